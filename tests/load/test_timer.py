"""The timer: never early, in order, whatever its callbacks do to it."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from perflab.load.workers.timer import Timer
from tests.load.hostile import on_uvloop

MS = 1_000_000
now = time.monotonic_ns


def with_timer(work: Callable[[Timer], Coroutine[Any, Any, Any]]) -> Any:
    async def outer() -> Any:
        complaints: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        timer = Timer(loop)
        try:
            return await work(timer)
        finally:
            timer.close()
            assert complaints == []

    return on_uvloop(outer)


def test_no_call_is_early_or_out_of_order() -> None:
    async def work(timer: Timer) -> list[tuple[int, int]]:
        start, called = now(), []
        chance = random.Random(1)
        instants = [-5, 0, *(start + chance.randrange(50 * MS) for _ in range(5_000))]
        for instant in instants:
            timer.at(instant, lambda due=instant: called.append((due, now())))
        async with asyncio.timeout(20):
            while len(called) < len(instants):
                await asyncio.sleep(0.01)
        assert sorted(instants) == [due for due, _ in called]
        return called

    assert all(at >= due for due, at in with_timer(work))


@pytest.mark.alone
def test_the_timer_is_finer_than_the_millisecond_of_the_loop() -> None:
    async def work(timer: Timer) -> list[int]:
        late: list[int] = []
        start = now() + 5 * MS
        for number in range(200):
            timer.at(
                start + number * MS // 4,
                lambda due=start + number * MS // 4: late.append(now() - due),
            )
        async with asyncio.timeout(20):
            while len(late) < 200:
                await asyncio.sleep(0.1)
        return late

    # As in a load worker: with all tests in memory, one collection stops everything for 0.4 s.
    gc.collect()
    gc.disable()
    try:
        late = sorted(with_timer(work))
    finally:
        gc.enable()
    assert len(late) == 200
    # With the loop's timer a tenth would be so punctual; other programs delay some calls.
    assert late[60] < MS / 10


def test_callbacks_that_ask_for_more_at_once_leave_the_loop_its_turns() -> None:
    async def work(timer: Timer) -> int:
        def again() -> None:
            timer.at(now(), again)

        timer.at(now(), again)
        turns = 0
        until = now() + 200 * MS
        while now() < until:
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert with_timer(work) > 10
