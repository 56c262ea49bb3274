"""Files are durable: the content is flushed, then renamed, then the folder's entry is flushed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from perflab.errors import PerflabError
from perflab.host.files import (
    explained,
    remove_broken_off,
    replace_file,
    whole_folder,
    write_file,
)


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


def test_the_error_of_a_full_disk_says_what_is_kept_and_where_else_to_write(tmp_path: Path) -> None:
    file = tmp_path / "figure.svg"
    with (
        pytest.raises(PerflabError, match=r"the run is kept\. Way out: make room .* or look up"),
        explained(file, "the run is kept", "look up", PerflabError),
    ):
        raise OSError(28, "No space left on device")


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
