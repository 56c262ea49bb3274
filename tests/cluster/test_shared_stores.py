"""A store holds what is published whole, or does not hold it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import fsspec
import pytest

from perflab.cluster.published_files import MARKER
from perflab.cluster.store import Store
from perflab.errors import StoreError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    (made / "trials").mkdir(parents=True)
    (made / "run.json").write_text("{}")
    (made / "trials" / "one.parquet").write_bytes(b"1" * 100_000)
    return made


@pytest.fixture
def other(folder: Path, tmp_path: Path) -> Path:
    """What another host has of the same run: all of it is equal, and there is one file more."""
    made = tmp_path / "other"
    shutil.copytree(folder, made)
    (made / "trials" / "two.parquet").write_bytes(b"2")
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


def test_of_two_hosts_that_publish_at_once_one_wins_and_the_other_is_told(
    folder: Path, other: Path, memory: Store
) -> None:
    second = Store("memory://bucket")

    class Overtaken(type(memory._system)):  # type: ignore[misc]
        def pipe_file(self, path: str, value: bytes, **options: object) -> None:
            # All files of the first are there; the second comes in before its marker.
            second.publish(other, "runs/some")
            super().pipe_file(path, value, **options)

    memory._system = Overtaken()
    with pytest.raises(StoreError, match="has something else as runs/some"):
        memory.publish(folder, "runs/some")
    assert "trials/two.parquet" in (second.published("runs/some") or {})


def test_what_another_host_has_put_is_not_overwritten(folder: Path, memory: Store) -> None:
    memory._system.pipe_file("/bucket/runs/some/trials/one.parquet", b"of another")
    with pytest.raises(StoreError, match=r"one.parquet: is something else, which another host"):
        memory.publish(folder, "runs/some")
    assert memory._system.cat_file("/bucket/runs/some/trials/one.parquet") == b"of another"
    assert memory.published("runs/some") is None


def test_a_store_that_overwrites_all_the_same_is_refused(memory: Store) -> None:
    class Careless(type(memory._system)):  # type: ignore[misc]
        def pipe_file(self, path: str, value: bytes, **_: object) -> None:
            super().pipe_file(path, value)

    memory.check_writable()
    memory._system = Careless()
    with pytest.raises(StoreError, match=r"asked not to \(If-None-Match\)"):
        memory.check_writable()
    assert memory._system.find("/bucket") == []


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKEY:hidden@bucket/place",
        "s3://AKEY:hid/hidden@bucket/place",
        "s3://bucket/place?secret_key=hidden",
        "s3://",
        "sftp://me:hidden@host/place",
    ],
)
def test_an_address_with_a_key_in_it_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(StoreError, match="environment") as refused:
        Store(url)
    assert "hidden" not in str(refused.value)
    assert "AKEY" not in str(refused.value)


def test_what_is_fetched_is_what_was_published(folder: Path, memory: Store, tmp_path: Path) -> None:
    memory.publish(folder, "runs/some")
    memory._system.pipe_file("/bucket/runs/broken/run.json", b"{}")
    assert memory.names("runs") == ["some"]
    here = tmp_path / "here" / "some"
    memory.fetch("runs/some", here)
    assert (here / "trials" / "one.parquet").read_bytes() == b"1" * 100_000
    # It could be published again, as the same.
    assert memory.publish(here, "runs/some") == "memory://bucket/runs/some"


def test_what_was_changed_since_it_was_published_is_not_fetched(
    folder: Path, memory: Store, tmp_path: Path
) -> None:
    memory.publish(folder, "runs/some")
    memory._system.pipe_file("/bucket/runs/some/trials/one.parquet", b"2" * 100_000)
    with pytest.raises(StoreError, match=r"trials/one.parquet is not what was published"):
        memory.fetch("runs/some", tmp_path / "here" / "some")
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/outside", "trials/../../outside", ""])
def test_a_marker_cannot_have_files_laid_elsewhere(
    memory: Store, tmp_path: Path, name: str
) -> None:
    marker = json.dumps({"files": {name: "0" * 64}}).encode()
    memory._system.pipe_file(f"/bucket/runs/some/{MARKER}", marker)
    with pytest.raises(StoreError, match="lies outside of its folder"):
        memory.fetch("runs/some", tmp_path / "here" / "some")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
