"""Two loads on one server take turns by a clock they share; a server that is paused is no hurry."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from perflab.load.by_window import window_table
from perflab.load.generator import Generator
from perflab.load.result import LoadResult
from perflab.load.windows import Window, Windows, window_of
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload
from tests.load.test_generator import Serve, serve

__all__ = ["serve"]
TURN_S, TURNS, USERS = 0.2, 6, 4
AHEAD_NS = 500_000_000
pytestmark = pytest.mark.slow


@pytest.fixture
def generators() -> Iterator[list[Generator]]:
    core = sorted(os.sched_getaffinity(0))[-1:]
    made = [Generator(core, {}) for _ in range(2)]
    for each in made:
        each.start()
    yield made
    for each in made:
        each.close()


def turns(first: int) -> Windows:
    """Return every second turn, each 50 ms shorter than its place."""
    spans = tuple(
        Window(start_s=number * TURN_S, end_s=(number + 1) * TURN_S - 0.05)
        for number in range(first, TURNS, 2)
    )
    return Windows(spans=spans, settle_ms=30)


def work(arrivals: ClosedLoop | OpenLoop) -> Workload:
    return Workload(request=Request(method="POST", body="{}"), arrivals=arrivals)


def users(first: int) -> Workload:
    return work(ClosedLoop(users=USERS, duration_s=TURN_S * TURNS, windows=turns(first)))


def rate(first: int) -> Workload:
    stage = Stage(rate=100, duration_s=TURN_S * TURNS)
    return work(OpenLoop(stages=(stage,), arrivals="poisson", windows=turns(first)))


def together(
    generators: list[Generator], loads: list[Workload], url: str
) -> tuple[int, list[LoadResult]]:
    start_ns = time.monotonic_ns() + AHEAD_NS
    with ThreadPoolExecutor(2) as threads:
        begun = [
            threads.submit(generator.run, load, url, start_ns=start_ns)
            for generator, load in zip(generators, loads, strict=True)
        ]
        return start_ns, [each.result() for each in begun]


@pytest.mark.parametrize("make", [users, rate])
def test_two_loads_take_turns_by_a_clock_they_share(
    generators: list[Generator], serve: Serve, make
) -> None:
    url, _ = serve(0.005, "good")
    start_ns, found = together(generators, [make(0), make(1)], url)
    own = [np.unique((planned(each) - start_ns) // round(TURN_S * 1e9)).tolist() for each in found]
    assert own == [[0, 2, 4], [1, 3, 5]]
    for result in found:
        assert (window_of(planned(result), result.windows) >= 0).all()
        assert len(window_table(result)) == TURNS // 2
        result.discard()


def planned(result: LoadResult) -> np.ndarray:
    return np.concatenate([np.array(rows["planned_ns"]) for rows in result.rows])
