"""Services take turns on the core."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import psutil
import pytest

from perflab.trials.designs import Rounds
from perflab.trials.turns import take_turns
from tests.support.children import child

pytestmark = pytest.mark.slow
GAP_MS, ROUNDS = 80, 3
DESIGN = Rounds(("a", "b"), ROUNDS, slice_ms=400)


class Busy:
    """A process that is always busy, and notes its pauses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.paused_ns: list[int] = []
        self.resumed_ns: list[int] = []

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        self.paused_ns.append(time.monotonic_ns())

    def resume(self) -> None:
        self.resumed_ns.append(time.monotonic_ns())
        os.kill(self.pid, signal.SIGCONT)


@pytest.fixture
def two() -> Iterator[dict[str, list[Busy]]]:
    program = "print(flush=True)\nwhile True: pass"
    with child(program) as a, child(program) as b:
        yield {"a": [Busy(a.pid)], "b": [Busy(b.pid)]}


@pytest.mark.promise
def test_one_treatment_is_awake_at_a_time_and_all_are_afterwards(
    two: dict[str, list[Busy]],
) -> None:
    turns = take_turns(DESIGN, two, time.monotonic_ns() + 100_000_000)
    table, pauses = turns.table, turns.pauses
    assert table["treatment"].tolist() == [turn.treatment for turn in DESIGN.turns()]
    # A treatment is resumed only after the treatment of the turn before was paused.
    events = sorted(
        [(at, "resumed", name) for name in two for at in two[name][0].resumed_ns[:ROUNDS]]
        + [(at, "paused", name) for name in two for at in two[name][0].paused_ns[1:]]
    )
    assert [word for _, word, _ in events] == ["resumed", "paused"] * 2 * ROUNDS
    assert all(a[2] == b[2] for a, b in zip(events[::2], events[1::2], strict=True))
    # The recorded pauses contain each pause whole.
    for name, service in two.items():
        recorded = pauses[name]
        assert len(recorded) == ROUNDS + 1
        assert (recorded[:, 0] <= service[0].paused_ns).all()
        assert (recorded[:, 1] >= service[0].resumed_ns[: ROUNDS + 1]).all()
    states = {psutil.Process(service[0].pid).status() for service in two.values()}
    assert psutil.STATUS_STOPPED not in states


def test_a_turn_that_comes_late_for_its_window_says_by_how_much(
    two: dict[str, list[Busy]],
) -> None:
    # The first window began 200 ms ago.
    start_ns = time.monotonic_ns() - (200 + GAP_MS) * 1_000_000
    table = take_turns(DESIGN, two, start_ns).table
    assert table["late_ns"][0] >= 200_000_000
    assert (table["late_ns"] >= 0).all()
