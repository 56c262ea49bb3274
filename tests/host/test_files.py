"""Files are durable: the content is flushed, then renamed, then the folder's entry is flushed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from perflab.errors import UnsafePlace
from perflab.host.files import remove_broken_off, replace_file, whole_folder, write_file
from perflab.host.own_folders import check_own, own_folder


def plain(path: Path) -> str:
    """Return a file's name without the random part."""
    return re.sub("-[0-9a-f]{8}$", "", path.name)


class Disk:
    """Notes every flush and rename, by name, and what a reader of ``watched`` reads then."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.watched: Path | None = None
        self.seen: list[str] = []
        for name in ("rename", "replace"):
            patch.setattr(os, name, self._renaming(getattr(os, name)))
        flush = os.fsync

        def flushed(descriptor: int) -> None:
            self._note(f"flush {plain(Path(f'/proc/self/fd/{descriptor}').readlink())}")
            flush(descriptor)

        patch.setattr(os, "fsync", flushed)

    def _renaming(self, rename):  # type: ignore[no-untyped-def]
        def renamed(source: str, target: str, **words: object) -> None:
            self._note(f"rename {plain(Path(source))} to {plain(Path(target))}")
            rename(source, target, **words)

        return renamed

    def _note(self, what: str) -> None:
        self.steps.append(what)
        if self.watched is not None:
            self.seen.append(self.watched.read_text())


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.mark.promise
def test_a_file_is_replaced_by_a_flushed_one_and_the_rename_is_flushed(
    disk: Disk, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    file.write_text("old")
    disk.watched = file
    replace_file(file, b"new")
    assert disk.steps == [
        "flush .tmp-run.json",
        "rename .tmp-run.json to run.json",
        f"flush {tmp_path.name}",
    ]
    assert disk.seen == ["old", "old", "new"], "readers see the old file or the new one"
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.promise
def test_a_folder_comes_to_be_whole(disk: Disk, tmp_path: Path) -> None:
    target = tmp_path / "trial"
    with whole_folder(target) as folder:
        write_file(folder / "table", lambda file: file.write(b"rows"))
        assert not target.exists()
    assert disk.steps == [
        "flush table",
        "flush .tmp-trial",
        "rename .tmp-trial to trial",
        f"flush {tmp_path.name}",
    ]
    assert (target / "table").read_bytes() == b"rows"


def test_a_folder_that_cannot_be_filled_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="full"), whole_folder(tmp_path / "trial"):
        raise ValueError("full")
    assert list(tmp_path.iterdir()) == []


def test_incomplete_files_of_killed_writers_are_removed_and_recent_ones_stay(
    tmp_path: Path,
) -> None:
    left, begun, whole = (tmp_path / name for name in (".tmp-run", ".tmp-run.json-01", "run.json"))
    left.mkdir()
    (left / "table").write_text("half")
    os.utime(left, (0, 0))
    begun.write_text("half")
    whole.write_text("whole")
    remove_broken_off(tmp_path, age_s=60)
    assert set(tmp_path.iterdir()) == {begun, whole}
    remove_broken_off(tmp_path)
    assert list(tmp_path.iterdir()) == [whole]


# The folders of the user: the lab reads, writes and executes nothing in another user's.


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_a_folder_is_made_for_its_user_alone_under_every_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = own_folder(tmp_path / "state")
    finally:
        os.umask(before)
    assert mode(folder) == 0o700
    folder.chmod(0o755)
    assert mode(own_folder(folder)) == 0o700, "one that is there gets the mode"


@pytest.mark.promise
def test_another_users_folder_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    monkeypatch.setattr("os.getuid", lambda: 61_234)
    with pytest.raises(UnsafePlace, match=r"belongs to user .*PERFLAB_STATE"):
        own_folder(tmp_path / "state")


def test_a_folder_that_others_can_write_in_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(UnsafePlace, match=r"can be written by others \(mode 1777\)"):
        own_folder(tmp_path)
    assert mode(tmp_path) == 0o1777


def test_a_link_and_a_file_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(UnsafePlace, match="is a link"):
        own_folder(tmp_path / "link")
    assert mode(tmp_path / "target") == 0o755
    (tmp_path / "file").touch()
    with pytest.raises(UnsafePlace, match="is not a folder"):
        check_own(tmp_path / "file")
