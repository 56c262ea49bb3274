"""Which hosts may carry out a sweep together."""

from __future__ import annotations

from typing import Any

import pytest

from perflab.sweeps.hosts.hosts import unfit

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
        "store": "",
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
