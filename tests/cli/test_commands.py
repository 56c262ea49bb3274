"""The command line as its user types it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perflab.paths import runs_dir
from tests.cli.conftest import Tell

PERFLAB = str(Path(sys.executable).with_name("perflab"))
# The cheapest stack; the test of the main job runs the inference service.
SMALL = ["-p", "blocks=1", "-p", 'client=["lean", "aiohttp"]', "-p", "rate=[200]",
         "-p", "duration_s=0.5"]  # fmt: skip


def typed(*words: str, code: int = 0) -> str:
    """Type a command as a separate process, which takes seconds to import."""
    done = subprocess.run([PERFLAB, *words], capture_output=True, text=True, timeout=280)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_help_names_every_command(perflab: Tell, tmp_path: Path) -> None:
    text = typed("--help")
    words = "lab run duel sweep runs show compare claims export experiments load import new doctor"
    for command in (*words.split(), "stack", "worker"):
        assert command in text
        assert "--help" in perflab(tmp_path, command, "--help")[0]


def test_errors_are_sentences_not_tracebacks(perflab: Tell, tmp_path: Path) -> None:
    text = typed("run", "synchronous_comit", code=1)
    assert "did you mean 'synchronous_commit'" in text
    assert "Traceback" not in text
    for words, expected in (
        (["run", "synchronous_commit", "-p", "blokcs=2"], "did you mean 'blocks'"),
        (["run"], "no experiment is named"),
        (["show", "nosuchrun"], "no run"),
        (["stack", "up", "inferense"], "did you mean 'inference'"),
        (["stack", "logs", "nothing"], "no service"),
        (["run", "synchronous_commit", "--backend", "podman"], "backend"),
    ):
        assert expected in perflab(tmp_path, *words, code=1)[1]


@pytest.mark.slow
def test_a_stack_can_be_put_up_looked_at_and_taken_down(
    backend_name: str, perflab: Tell, tmp_path: Path
) -> None:
    try:
        assert "http://127.0.0.1:" in typed("stack", "up", "inference", "--backend", backend_name)
        listed = typed("stack", "ps")
        for service in ("postgres", "link", "inference"):
            assert service in listed
        assert "ready to accept connections" in perflab(tmp_path, "stack", "logs", "postgres")[0]
    finally:
        removed = typed("stack", "down")
    assert "inference" in removed
    assert "no services are up" in perflab(tmp_path, "stack", "ps")[0]


@pytest.mark.slow
def test_run_ends_with_a_verdict_and_figures_and_show_repeats_it(perflab: Tell) -> None:
    text = typed("run", "client_overhead", "--backend", "process", *SMALL)
    assert "throughput.svg" in text
    assert "process" in perflab(runs_dir(), "runs")[0]
    shown = perflab(runs_dir(), "show", "latest:client_overhead")[0]
    assert "b000-p00-a0" in shown
