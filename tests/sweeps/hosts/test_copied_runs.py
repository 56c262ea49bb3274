"""A store holds whole copies only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflab.errors import StoreError
from perflab.sweeps.hosts.hosts import LIST, Store
from tests.cli.conftest import Tell
from tests.support.synthetic import write_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    (run / "trials").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (run / "trials" / "one.parquet").write_bytes(b"1" * 100_000)
    return run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def test_what_comes_back_is_what_was_copied(store: Store, folder: Path, tmp_path: Path) -> None:
    assert store.names("runs") == []
    assert store.put(folder, "runs/some") == f"{store.folder}/runs/some"
    assert store.names("runs") == ["some"]
    here = tmp_path / "here" / "some"
    store.get("runs/some", here)
    assert (here / "trials" / "one.parquet").read_bytes() == b"1" * 100_000
    assert {path.name for path in here.iterdir()} == {"run.json", "trials"}
    # The same folder may be copied again, but no other to its place.
    store.put(here, "runs/some")
    (here / "run.json").write_text("other")
    with pytest.raises(StoreError, match="has something else as runs/some"):
        store.put(here, "runs/some")


def test_a_copy_that_was_broken_off_is_not_read_and_a_new_one_takes_its_place(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    for name in (".tmp-some", "other"):
        half = store.folder / "runs" / name
        half.mkdir(parents=True)
        (half / "run.json").write_text("half")
    assert store.names("runs") == []
    with pytest.raises(StoreError, match="nothing has been copied"):
        store.get("runs/some", tmp_path / "here")
    store.put(folder, "runs/some")
    store.get("runs/some", tmp_path / "here")
    assert (tmp_path / "here" / "run.json").read_text() == "{}"


@pytest.mark.parametrize("name", ["trials/one.parquet", "run.json"])
def test_what_was_changed_since_is_not_taken(
    store: Store, folder: Path, tmp_path: Path, name: str
) -> None:
    store.put(folder, "runs/some")
    (store.folder / "runs" / "some" / name).write_bytes(b"2" * 100_000)
    with pytest.raises(StoreError, match=f"{name} was changed since it was copied"):
        store.get("runs/some", tmp_path / "here" / "some")
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/outside", "trials/../../outside", ""])
def test_a_list_cannot_have_files_laid_elsewhere(
    store: Store, folder: Path, tmp_path: Path, name: str
) -> None:
    store.put(folder, "runs/some")
    (store.folder / "runs" / "some" / LIST).write_text(json.dumps({name: "0" * 64}))
    with pytest.raises(StoreError, match="lies outside of its folder"):
        store.get("runs/some", tmp_path / "here" / "some")
    assert list((tmp_path / "here").iterdir()) == []
    assert not (tmp_path / "outside").exists()


def test_a_store_that_cannot_be_written_is_told() -> None:
    with pytest.raises(StoreError, match="Check the folder"):
        Store("/proc/nosuch").check_writable()


@pytest.mark.parametrize(
    "address",
    ["s3://AKEY:hid/hidden@bucket/place", "s3://bucket/place?key=hidden", "sftp://me:hidden@host/"],
)
def test_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(StoreError, match="mount the place") as refused:
        Store(address)
    assert "hidden" not in str(refused.value)
    assert "AKEY" not in str(refused.value)


def test_the_runs_of_a_store_are_brought_and_listed(perflab: Tell, tmp_path: Path) -> None:
    measured, place = tmp_path / "measured", str(tmp_path / "store")
    for name in ("20260101-first", "20260102-other"):
        write_run(measured, blocks=1, requests=40, run_id=name)
        Store(place).put(measured / name, f"runs/{name}")
    write_run(tmp_path / "store" / "runs", blocks=1, requests=40, run_id="20260103-broken")
    here = tmp_path / "here"
    write_run(here, blocks=1, requests=40, run_id="20260104-own")
    output, errors = perflab(here, "runs", "--from", place, "--json")
    assert [run["run"] for run in json.loads(output)] == ["20260101-first", "20260102-other"]
    assert "copied 20260102-other" in errors
    assert "copied" not in perflab(here, "runs", "--from", place)[1]
    assert len(json.loads(perflab(here, "runs", "--json")[0])) == 3
    _, errors = perflab(here, "runs", "--from", str(here), code=1)
    assert "that was the --store of a 'perflab sweep'" in errors
