"""``perflab fetch`` as its users type it, from a folder that hosts share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflab.cluster.store import Store
from tests.cli.conftest import Tell
from tests.synthetic import write_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two published runs, and one that was broken off."""
    measured = tmp_path / "measured"
    for name in ("20260101-first", "20260102-other"):
        write_run(measured, blocks=1, requests=40, run_id=name)
        Store(str(tmp_path / "store")).publish(measured / name, f"runs/{name}")
    write_run(tmp_path / "store" / "runs", blocks=1, requests=40, run_id="20260103-broken")
    return tmp_path / "store"


def test_published_runs_are_brought_and_listed(perflab: Tell, store: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    assert "1 brought to" in perflab(here, "fetch", str(store), "20260102")[0]
    told, _ = perflab(here, "fetch", str(store))
    assert "20260101-first\n20260102-other (was here)\n1 brought to" in told
    listed = json.loads(perflab(here, "runs", "--json")[0])
    assert [run["run"] for run in listed] == ["20260101-first", "20260102-other"]


def test_a_run_or_store_that_is_not_there_is_told(
    perflab: Tell, store: Path, tmp_path: Path
) -> None:
    _, errors = perflab(tmp_path / "here", "fetch", str(store), "2027", code=1)
    assert "the id of none of its 2 runs begins with '2027'" in errors
    _, errors = perflab(tmp_path / "here", "fetch", str(tmp_path / "here"), code=1)
    assert "give the address that 'perflab sweep' had as --store" in errors
    _, errors = perflab(Path("s3://results/runs"), "runs", PERFLAB_RUNS="s3://results/runs", code=1)
    assert "'perflab fetch STORE' brings published runs" in errors
