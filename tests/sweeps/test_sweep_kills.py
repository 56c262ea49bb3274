"""Whichever process of a sweep is killed: nothing is lost, repeated, changed or left behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

from perflab.paths import project_root


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_whose_processes_are_killed_at_random_ends_as_its_file_asks() -> None:
    program = project_root() / "benchmarks" / "sweep_kills.py"
    words = ["--times", "3", "--cells", "1", "--minutes", "8"]
    done = subprocess.run([sys.executable, program, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills, 1 cells done" in done.stdout
    assert done.stdout.endswith("0 faults\n")
