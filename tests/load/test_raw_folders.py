"""Temporary folders of raw rows do not outlive their owners, and no others are touched."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perflab.host.temporary_folders import OWNER, remove_abandoned
from perflab.load.record_place import keep, place, raw_folder
from perflab.load.workload import Burst, Request, Workload
from perflab.paths import project_root

OWNING = (
    "from perflab.load.record_place import raw_folder\nprint(raw_folder(), flush=True)\ninput()"
)
WORK = Workload(request=Request(), arrivals=Burst(size=10))
Owner = Callable[[], tuple[Path, subprocess.Popen[bytes]]]


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def owner() -> Iterator[Owner]:
    """Start processes that have a folder each."""
    children: list[subprocess.Popen[bytes]] = []

    def start() -> tuple[Path, subprocess.Popen[bytes]]:
        child = subprocess.Popen(
            [sys.executable, "-c", OWNING],
            cwd=project_root(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        return Path(child.stdout.readline().decode().strip()), child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def test_a_load_removes_what_killed_ones_left_and_nothing_of_those_that_run(
    owner: Owner, tmp_path: Path
) -> None:
    (left, killed), (used, _) = owner(), owner()
    (left / "0").mkdir()
    (left / "0" / "requests.rows").write_bytes(b"x")
    killed.kill()
    killed.wait()
    own = raw_folder()
    assert not left.exists()
    assert used.is_dir()
    assert own.is_dir()
    assert {own, used} == set(tmp_path.iterdir())


def test_what_a_user_was_told_of_outlives_its_owner(tmp_path: Path) -> None:
    with place(None, WORK) as here:
        (here.raw / "0").mkdir(parents=True)
        here.keep = True
    assert here.folder.is_dir()
    assert not (here.folder / OWNER).exists()
    kept = raw_folder()
    keep(kept)
    keep(kept)
    remove_abandoned()
    assert {here.folder, kept} == set(tmp_path.iterdir())
