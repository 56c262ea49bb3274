"""Logs of services stay short, and keep how the service started and what it wrote last."""

from __future__ import annotations

from pathlib import Path

from perflab.stacks.stack_folders import KEPT_BYTES, LONGEST_LOG_BYTES, shorten


def test_a_long_log_keeps_both_ends_and_says_what_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"begin" + b"x" * LONGEST_LOG_BYTES + b"end")
        shorten(log)
        writer.write(b"and on")
    kept = log.read_bytes()
    assert kept.startswith(b"begin")
    assert kept.endswith(b"endand on")
    left_out = LONGEST_LOG_BYTES + 8 - 2 * KEPT_BYTES
    assert b"\n[perflab: %d bytes left out here]\n" % left_out in kept
    assert len(kept) < 2 * KEPT_BYTES + 100
