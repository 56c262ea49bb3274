"""What a cell left is published once, whoever is lost before anybody heard of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.cluster.order import END, publish_success, published_end
from perflab.cluster.store import Store
from perflab.errors import StoreError
from perflab.sweeps.journal import AttemptEnded
from tests.synthetic import write_run


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AttemptEnded:
    """A cell that is done: its run, its notebook and a figure are on this host."""
    monkeypatch.setenv("PERFLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PERFLAB_FIGURES", str(tmp_path / "figures"))
    write_run(tmp_path / "runs", requests=20, run_id="mine")
    figures = tmp_path / "figures" / "mine"
    figures.mkdir(parents=True)
    for name in ("some.ipynb", "effect.svg"):
        (figures / name).write_text("first")
    return AttemptEnded(
        cell="a", attempt=1, done=True, seconds=3, run_id="mine",
        notebook=str(figures / "some.ipynb"), figures=(str(figures / "effect.svg"),),
    )  # fmt: skip


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return Store(str(tmp_path / "store"))
    import fsspec

    fsspec.filesystem("memory").store.clear()
    return Store("memory://bucket")


def test_how_a_cell_ended_can_be_read_from_the_store(store: Store, ended: AttemptEnded) -> None:
    assert published_end(store, "mine") is None
    assert published_end(store, "") is None
    told = publish_success(store, ended)
    assert told.published == store.address("runs/mine")
    assert told.notebook == f"{store.address('figures/mine')}/some.ipynb"
    found = published_end(store, "mine")
    assert found == told


def test_a_run_stands_in_the_store_only_when_all_that_belongs_to_it_does(
    store: Store, ended: AttemptEnded, tmp_path: Path
) -> None:
    publish = store.publish

    def lost_before_the_run(folder: Path, place: str) -> str:
        if place.startswith("runs/"):
            raise StoreError("the worker is lost")
        return publish(folder, place)

    store.publish = lost_before_the_run  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="lost"):
        publish_success(store, ended)
    assert published_end(store, "mine") is None
    store.publish = publish  # type: ignore[method-assign]
    # The next attempt executes the notebook again, to show the run: what is published stays.
    (tmp_path / "figures" / "mine" / "some.ipynb").write_text("second")
    again = ended.model_copy(update={"attempt": 2, "seconds": 1.0})
    told = publish_success(store, again)
    assert (told.attempt, told.seconds) == (2, 1.0)
    assert store.read("figures/mine/some.ipynb") == b"first"
    assert published_end(store, "mine") is not None
    assert END in (store.published("figures/mine") or {})


def test_what_a_lost_worker_left_half_is_cleared_and_what_is_published_stays(
    store: Store, ended: AttemptEnded, tmp_path: Path
) -> None:
    publish_success(store, ended)
    if store.is_folder:
        half = tmp_path / "store" / "runs" / ".tmp-other-0123abcd"
        half.mkdir()
    else:
        import fsspec

        fsspec.filesystem("memory").pipe_file("/bucket/runs/other/run.json", b"half")
    for name in ("mine", "other"):
        store.clear(f"runs/{name}")
    assert store.published("runs/mine") is not None
    with pytest.raises(StoreError):
        store.read("runs/other/run.json")
    assert not store.is_folder or not half.exists()
