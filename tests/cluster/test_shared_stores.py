"""A store holds what is published whole, or does not hold it."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from perflab.cluster.store import MARKER, Store
from perflab.errors import StoreError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    (made / "trials").mkdir(parents=True)
    (made / "run.json").write_text("{}")
    (made / "trials" / "one.parquet").write_bytes(b"1" * 100_000)
    return made


@pytest.fixture
def memory() -> Store:
    """A store without renames, as object stores are."""
    fsspec.filesystem("memory").store.clear()
    return Store("memory://bucket")


def test_a_folder_gets_its_name_once_all_of_it_is_there(folder: Path, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    there = Path(store.publish(folder, "runs/some"))
    assert there == tmp_path / "store" / "runs" / "some"
    assert (there / "trials" / "one.parquet").read_bytes() == b"1" * 100_000
    assert set(json.loads((there / MARKER).read_text())["files"]) == {
        "run.json",
        "trials/one.parquet",
    }
    assert [path.name for path in there.parent.iterdir()] == ["some"]


def test_a_write_that_fails_leaves_nothing_that_looks_published(
    folder: Path, tmp_path: Path
) -> None:
    # Its place is taken by what nobody published: the copy is made, and cannot get its name.
    store = Store(str(tmp_path / "store"))
    (tmp_path / "store" / "runs" / "some").mkdir(parents=True)
    (tmp_path / "store" / "runs" / "some" / "other").write_text("in the way")
    with pytest.raises(StoreError, match="all of it is still in"):
        store.publish(folder, "runs/some")
    assert [path.name for path in (tmp_path / "store" / "runs").iterdir()] == ["some"]


def test_an_object_stores_marker_comes_last(folder: Path, memory: Store) -> None:
    system = fsspec.filesystem("memory")
    written: list[str] = []
    full = [True]

    class Watched(type(system)):  # type: ignore[misc]
        def open(self, path: str, *words: object, **options: object) -> object:
            written.append(path)
            if "one.parquet" in path and full:
                raise OSError(28, "No space left on device")
            return super().open(path, *words, **options)

        def pipe_file(self, path: str, value: bytes, **options: object) -> None:
            written.append(path)
            super().pipe_file(path, value, **options)

    memory._system = Watched()
    with pytest.raises(StoreError, match="No space left"):
        memory.publish(folder, "runs/some")
    assert memory.published("runs/some") is None
    written.clear()
    full.clear()
    assert memory.publish(folder, "runs/some") == "memory://bucket/runs/some"
    assert written[-1].endswith(f"runs/some/{MARKER}")
    assert set(memory.published("runs/some") or {}) == {"run.json", "trials/one.parquet"}


def test_what_is_published_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    store.publish(folder, "runs/some")
    store.publish(folder, "runs/some")
    (folder / "run.json").write_text("other")
    with pytest.raises(StoreError, match="has something else as runs/some"):
        store.publish(folder, "runs/some")
    assert (tmp_path / "store" / "runs" / "some" / "run.json").read_text() == "{}"


@pytest.mark.parametrize("url", ["nosuch://place", "/proc/nosuch"])
def test_a_store_that_cannot_be_written_is_told_with_a_way_out(url: str) -> None:
    with pytest.raises(StoreError, match=r"cannot be used .* Way out"):
        Store(url).check_writable()
