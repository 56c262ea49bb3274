"""The flush probe measures real flushes, and refuses file systems where there are none."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from flush_probe import filesystem_of

from perflab.paths import services_dir

PROBE = services_dir() / "postgres" / "flush_probe.py"
MOUNTS = [
    "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw",
    "2 1 0:2 / /var/lib rw - xfs /dev/data rw",
    r"3 1 0:3 / /var/my\040disk rw master:2 - btrfs /dev/other rw",
    "4 1 0:4 / /var/lib rw - tmpfs tmpfs rw",
]


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
    found = json.loads(done.stdout)
    assert set(found) == {"filesystem", "flush_us"}
    assert len(found["flush_us"]) == 7
    assert min(found["flush_us"]) > 0
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no tmpfs here")
def test_it_refuses_a_file_system_in_memory() -> None:
    done = probe("/dev/shm")
    assert done.returncode == 3
    assert "tmpfs: put the database on a real disk" in done.stderr
    assert done.stdout == ""


def test_the_longest_and_last_mount_holds_a_path() -> None:
    held = {"/var/library": "ext4", "/var/lib/postgres": "tmpfs", "/var/my disk/data": "btrfs"}
    assert {path: filesystem_of(path, MOUNTS) for path in held} == held
