"""Which hosts may carry out a sweep together, and what becomes of their orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import LocalCluster

from perflab.errors import ClusterError
from perflab.sweeps.cells import Cell, open_sweep
from perflab.sweeps.hosts.dispatch import FAILURES, NONE_LEFT, Dispatch, OrderEnd, connected
from perflab.sweeps.hosts.hosts import unfit
from perflab.sweeps.hosts.worker import BEGUN, ENDED, CellOrder, News

ONE, TWO = "tcp://one:1", "tcp://two:1"
HOSTS = {ONE: "one", TWO: "two"}


class Future:
    """Dask's future of an order."""

    def __init__(self, workers: list[str]) -> None:
        self.workers = workers
        self.status = "pending"
        self.is_released = False

    def add_done_callback(self, call: Callable[[Future], None]) -> None:
        self.done = call

    def release(self) -> None:
        self.is_released = True

    def result(self) -> str:
        raise AssertionError("Dask would have it executed again, and wait for that")


class Client:
    """A client of a scheduler with the workers ``there``."""

    def __init__(self) -> None:
        self.there = [ONE, TWO]
        self.futures: list[Future] = []
        self._looks = 0

    def subscribe_topic(self, _: str, take: Callable[[tuple[float, dict[str, Any]]], None]) -> None:
        self.take = take

    def submit(self, *_: object, workers: list[str], **_words: object) -> Future:
        self.futures.append(Future(workers))
        return self.futures[-1]

    def run_on_scheduler(self, _: object) -> list[str]:
        self._looks += 1
        assert self._looks < 3, "it would wait for ever"
        return self.there

    def tells(self, what: str, text: str, cell: Cell, attempt: int = 1) -> None:
        self.take((0.0, asdict(News(what, text, cell.id, attempt, "one"))))


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    file = tmp_path / "one.yaml"
    file.write_text("cells: [{notebook: client_overhead}]")
    return open_sweep(file).cells[0]


def order(cell: Cell, attempt: int = 1) -> CellOrder:
    return CellOrder("sweep", cell, attempt, resumes="", results="", wait_s=0, topic="topic")


def test_an_end_that_is_told_is_believed_and_dask_forgets_the_order(cell: Cell) -> None:
    client = Client()
    dispatch = Dispatch(client, HOSTS, "topic")
    dispatch.submit(order(cell))
    client.tells(BEGUN, "", cell)
    client.tells(ENDED, "its line", cell)
    # The worker is lost now, and a cell that Dask begins again elsewhere belongs to no order.
    client.tells(BEGUN, "", cell)
    (future,) = client.futures
    future.status = "finished"
    future.done(future)
    began, ended = dispatch.news()
    assert isinstance(began, News)
    assert ended == OrderEnd(order(cell), line="its line")
    assert future.is_released
    assert dispatch.under_way == []


def test_an_order_comes_back_when_the_only_host_that_may_carry_it_out_is_gone(cell: Cell) -> None:
    client = Client()
    dispatch = Dispatch(client, HOSTS, "topic")
    dispatch.submit(order(cell), host="two")
    assert client.futures[0].workers == [TWO]
    client.there = [ONE]
    assert list(dispatch.news()) == [OrderEnd(order(cell), lost="two")]
    assert not dispatch.knows("two")
    dispatch.submit(order(cell))
    assert client.futures[1].workers == [ONE]


def test_orders_are_not_given_to_workers_that_nobody_compared(cell: Cell) -> None:
    client = Client()
    dispatch = Dispatch(client, HOSTS, "topic")
    dispatch.submit(order(cell))
    client.there = ["tcp://three:1"]
    with pytest.raises(ClusterError, match=NONE_LEFT):
        list(dispatch.news())
    with pytest.raises(ClusterError, match=NONE_LEFT):
        dispatch.submit(order(cell))


HERE: dict[str, Any] = {
    "code": {"perflab": "a", "requirements.lock": "b"},
    "notebooks": {"notebook x": "c"},
    "parameters": {"digest": "d"},
}


def host(name: str, **other: Any) -> dict[str, Any]:
    return {
        **HERE,
        "host": name,
        "place": ["boot", f"/lock/{name}"],
        "python": "3.11.7",
        "packages": {"numpy": "2.1"},
        "machine": {"cpu": "some", "cores": 4},
        "worker": {"threads": 1, "bench": 1, "profiler": False},
        "results": "",
        **other,
    }


def test_every_difference_is_told_with_its_host() -> None:
    workers = [
        host("one"),
        host("two", code={"perflab": "a", "requirements.lock": "other"}),
        host("three", packages={"numpy": "2.2"}, parameters={"digest": "other"}),
        host("four", machine={"cpu": "some", "cores": 8}),
    ]
    assert unfit(HERE, workers) == [
        "two: code.requirements.lock (b -> other) (here -> there)",
        "three: parameters.digest (d -> other) (here -> there)",
        "three: packages.numpy (2.1 -> 2.2) (one -> there)",
        "four: machine.cores (4 -> 8) (one -> there)",
    ]


def test_two_workers_of_one_host_are_refused() -> None:
    assert unfit(HERE, [host("one"), host("two", place=["boot", "/lock/one"])]) == [
        "two: has the machine and lock of one; a host has one worker"
    ]
    assert unfit(HERE, [host("one"), host("one", place=["boot", "/other"])]) == [
        "one: has the name of one; a host has one worker"
    ]


@pytest.mark.parametrize("odd", [{"profiler": True}, {"threads": 2}, {"bench": 0}])
def test_a_worker_that_disturbs_measurements_is_refused(odd: dict[str, Any]) -> None:
    options = {"threads": 1, "bench": 1, "profiler": False, **odd}
    (problem,) = unfit(HERE, [host("one", worker=options)])
    assert "start it with 'perflab worker'" in problem


def test_a_scheduler_that_would_measure_again_silently_is_refused() -> None:
    usual = {"distributed.scheduler.allowed-failures": 3}
    with (
        dask.config.set(usual),
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as started,
        pytest.raises(ClusterError, match=FAILURES),
        connected(started.scheduler_address),
    ):
        raise AssertionError
