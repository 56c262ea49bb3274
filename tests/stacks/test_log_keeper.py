"""Logs stay short however much a service writes, also when nobody of the lab is left."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from perflab.stacks import log_keeper
from perflab.stacks.log_keeper import KEPT_BYTES, LONGEST_BYTES, cut_middle, keep, open_log
from perflab.stacks.process_instance import tail

# 64 KiB every 2 ms are 30 MiB a second.
TALKER = """
import os, sys, time
os.write(1, b"the first line\\n")
number = 0
while True:
    os.write(1, b"%060d...\\n" % number * 1024)
    number += 1
    time.sleep(0.002)
"""
# Starts a service, says its pid, and is gone, like 'perflab stack up'.
UP = """
import subprocess, sys
from pathlib import Path
from perflab.stacks import log_keeper
folder = Path(sys.argv[1])
with log_keeper.open_log(str(folder / "talker.log")) as log:
    child = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdout=log, stderr=log)
log_keeper.keep(folder)
print(child.pid, flush=True)
import os
os._exit(0)
"""


def keepers(folder: Path) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"]
        and process.info["cmdline"][-2:] == [log_keeper.__file__, str(folder)]
    ]


def wait_until(true: Callable[[], object], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def talker(tmp_path: Path) -> Iterator[psutil.Process]:
    """A service that writes without end, of a lab that is gone."""
    done = subprocess.run(
        [sys.executable, "-c", UP, tmp_path, TALKER],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    process = psutil.Process(int(done.stdout))
    yield process
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
    wait_until(lambda: not keepers(tmp_path))


@pytest.mark.alone
@pytest.mark.slow
def test_a_service_that_writes_without_end_fills_no_disk(
    talker: psutil.Process, tmp_path: Path
) -> None:
    log = tmp_path / "talker.log"
    sizes, deadline = [], time.monotonic() + 4
    while time.monotonic() < deadline:
        sizes.append(log.stat().st_size)
        time.sleep(0.02)
    written = int(tail(log, 2).splitlines()[0].strip(".")) * 64 * 1024
    assert written > 5 * LONGEST_BYTES
    # As much as it writes between two looks comes on top.
    assert max(sizes) < written / 2
    assert log.read_bytes().startswith(b"the first line\n")
    # Between its cut and what it puts back the keeper may be seen at work.
    wait_until(lambda: b"bytes left out here]\n" in log.read_bytes())
    assert talker.is_running()
    (keeper,) = keepers(tmp_path)
    assert psutil.Process(keeper).nice() == 19
    assert sum(psutil.Process(keeper).cpu_times()[:2]) < 0.3


@pytest.mark.slow
def test_the_keeper_ends_with_the_last_service_and_comes_back_with_the_next(
    talker: psutil.Process, tmp_path: Path
) -> None:
    assert len(keepers(tmp_path)) == 1
    with open_log(str(tmp_path / "other.log")) as log:
        other = subprocess.Popen([sys.executable, "-c", TALKER], stdout=log)
    keep(tmp_path)
    assert len(keepers(tmp_path)) == 1
    talker.kill()
    talker.wait()
    time.sleep(2 * log_keeper.LOOK_EVERY_S)
    assert len(keepers(tmp_path)) == 1
    other.kill()
    other.wait()
    wait_until(lambda: not keepers(tmp_path), 3)
    with open_log(str(tmp_path / "other.log")):
        keep(tmp_path)
        wait_until(lambda: len(keepers(tmp_path)) == 1)


def test_a_long_log_keeps_both_ends_and_says_what_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"begin" + b"x" * LONGEST_BYTES + b"end")
        cut_middle(log)
        writer.write(b"and on")
    kept = log.read_bytes()
    assert kept.startswith(b"begin")
    assert kept.endswith(b"endand on")
    assert b"\n[perflab: %d bytes left out here]\n" % (LONGEST_BYTES + 8 - 2 * KEPT_BYTES) in kept
    assert len(kept) < 2 * KEPT_BYTES + 100


def test_a_log_of_the_allowed_length_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    log.write_bytes(b"x" * LONGEST_BYTES)
    cut_middle(log)
    assert log.stat().st_size == LONGEST_BYTES


def test_a_link_in_place_of_a_log_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"x" * (LONGEST_BYTES + 1))
    (tmp_path / "service.log").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        cut_middle(tmp_path / "service.log")
    assert precious.stat().st_size == LONGEST_BYTES + 1
