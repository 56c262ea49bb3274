"""The flush probe measures real flushes, and refuses file systems where there are none."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.paths import services_dir

PROBE = services_dir() / "postgres" / "flush_probe.py"


def probe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROBE), *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


def test_it_prints_one_duration_per_flush_and_leaves_nothing(folder: Path) -> None:
    done = probe(str(folder), "--count", "7")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    told = json.loads(done.stdout)
    assert set(told) == {"filesystem", "flush_us"}
    assert len(told["flush_us"]) == 7
    assert min(told["flush_us"]) > 0
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no tmpfs here")
def test_it_refuses_a_file_system_in_memory() -> None:
    done = probe("/dev/shm")
    assert done.returncode
    assert "tmpfs: put the database on a real disk" in done.stderr
    assert done.stdout == ""
