"""The folder of results holds whole copies only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflab.errors import FolderError
from perflab.sweeps.hosts.hosts import LIST, SharedFolder
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
def results(tmp_path: Path) -> SharedFolder:
    return SharedFolder(str(tmp_path / "results"))


def test_a_copy_is_whole_and_is_never_overwritten(results: SharedFolder, folder: Path) -> None:
    for name in (".tmp-some", "other"):
        half = results.folder / "runs" / name
        half.mkdir(parents=True)
        (half / "run.json").write_text("half")
    copy = Path(results.put(folder, "runs/some"))
    assert copy == results.folder / "runs" / "some"
    assert (copy / "trials" / "one.parquet").read_bytes() == b"1" * 100_000
    assert {path.name for path in copy.iterdir()} == {"run.json", "trials", LIST}
    # The same folder may be copied again, but no other to its place.
    results.put(folder, "runs/some")
    (folder / "run.json").write_text("other")
    with pytest.raises(FolderError, match="has something else as runs/some"):
        results.put(folder, "runs/some")
    assert (copy / "run.json").read_text() == "{}"


def test_a_folder_that_cannot_be_written_is_told() -> None:
    with pytest.raises(FolderError, match="Check the folder"):
        SharedFolder("/proc/nosuch").check_writable()


@pytest.mark.parametrize(
    "address",
    ["s3://AKEY:hid/hidden@bucket/place", "s3://bucket/place?key=hidden", "sftp://me:hidden@host/"],
)
def test_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(FolderError, match="mount the place") as refused:
        SharedFolder(address)
    assert "hidden" not in str(refused.value)
    assert "AKEY" not in str(refused.value)


def test_the_runs_of_that_folder_are_listed_where_they_lie(perflab: Tell, tmp_path: Path) -> None:
    measured, results = tmp_path / "measured", tmp_path / "results"
    for name in ("20260101-first", "20260102-other"):
        write_run(measured, blocks=1, requests=40, run_id=name)
        SharedFolder(str(results)).put(measured / name, f"runs/{name}")
    listed = json.loads(perflab(results / "runs", "runs", "--json")[0])
    assert [run["run"] for run in listed] == ["20260101-first", "20260102-other"]
