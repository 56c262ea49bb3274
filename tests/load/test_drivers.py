"""Planned instants, from which response times count, do not depend on the client's lateness.

The timer that wakes the client is never early.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load.clients.outcome import AFTER, MEASURE, WARMUP
from perflab.load.users import User, action
from perflab.load.workers import scripted
from perflab.load.workers.scripted import ScriptedDriver
from perflab.load.workers.timer import Timer
from perflab.load.workload import Burst, ClosedLoop, Connections, OpenLoop, Scripted, Stage
from perflab.load.workload.schedule import active, instants
from tests.load.clients.hostile import on_uvloop
from tests.load.virtual import MS, ORIGIN, START_NS, S, Sent, World

WORLDS = st.builds(
    World,
    service_ns=st.integers(0, 300 * MS),
    late_ns=st.integers(0, 30 * MS),
    handling_ns=st.integers(0, 30 * MS),
    stall=st.tuples(st.integers(0, S), st.integers(0, S)).map(lambda ends: tuple(sorted(ends))),
)


def opened(world: World, arrivals: OpenLoop | Burst) -> list[Sent]:
    requests, unsent = world.opened(arrivals)
    assert len(requests) + unsent == sum(map(len, instants(arrivals)))
    return requests


def closed(world: World, arrivals: ClosedLoop) -> dict[int, list[Sent]]:
    requests, _ = world.closed(arrivals)
    return {
        user: [request for request in requests if request.user == user]
        for user in range(arrivals.users)
    }


def planned(arrivals: OpenLoop | Burst) -> list[int]:
    return np.concatenate(list(instants(arrivals))).tolist()


OPEN = OpenLoop(stages=(Stage(rate=40, duration_s=1),), warmup_s=0.25)
POISSON = OpenLoop(stages=(Stage(rate=40, duration_s=1),), arrivals="poisson", seed=3)


@pytest.mark.parametrize("arrivals", [OPEN, POISSON, Burst(size=15)])
@settings(max_examples=12, deadline=None)
@given(WORLDS)
def test_an_open_load_is_planned_by_its_schedule_however_late_it_is_sent(
    arrivals: OpenLoop | Burst, world: World
) -> None:
    requests = opened(world, arrivals)
    assert [request.planned_ns for request in requests] == planned(arrivals)
    for request in requests:
        assert request.started_ns >= request.planned_ns
        assert request.done_ns - request.started_ns == world.service_ns


@pytest.mark.promise
def test_a_client_that_stood_still_starts_the_requests_planned_meanwhile_late() -> None:
    requests = opened(World(service_ns=2 * MS, stall=(300 * MS, 600 * MS)), OPEN)
    missed = [request for request in requests if 300 * MS <= request.planned_ns < 600 * MS]
    assert len(missed) == 12
    assert {request.started_ns for request in missed} == {600 * MS}
    assert max(request.done_ns - request.planned_ns for request in requests) == 302 * MS


@pytest.mark.promise
def test_requests_that_a_stop_leaves_of_a_schedule_are_counted_as_unsent() -> None:
    requests, unsent = World().opened(OPEN, stop_ns=510 * MS)
    assert (len(requests), unsent) == (21, 19)


@pytest.mark.parametrize("think_time_s", [0.0, 0.02])
@settings(max_examples=12, deadline=None)
@given(st.builds(World, service_ns=st.integers(0, 300 * MS), late_ns=st.integers(0, 30 * MS)))
def test_users_who_keep_a_load_up_go_on_until_the_last_measured_answer(
    think_time_s: float, world: World
) -> None:
    arrivals = ClosedLoop(
        users=3, requests=30, warmup_requests=5, think_time_s=think_time_s, keep_up=True
    )
    requests = closed(world, arrivals)
    all_requests = [request for of_user in requests.values() for request in of_user]
    stages = [request.stage for request in all_requests]
    assert (stages.count(WARMUP), stages.count(MEASURE)) == (5, 30)
    last_ns = max(request.done_ns for request in all_requests if request.stage == MEASURE)
    assert all(request.started_ns <= last_ns for request in all_requests if request.stage == AFTER)
    for of_user in requests.values():
        # No user left before.
        assert of_user[-1].done_ns + round(think_time_s * 1e9) >= last_ns


@pytest.mark.parametrize("keep_up", [False, True])
def test_requests_that_a_stop_leaves_of_a_given_number_are_counted_as_unsent(keep_up: bool) -> None:
    arrivals = ClosedLoop(users=3, requests=3000, think_time_s=0.02, keep_up=keep_up)
    requests, unsent = World(service_ns=10 * MS).closed(arrivals, stop_ns=510 * MS)
    assert {request.stage for request in requests} == {MEASURE}
    assert len(requests) + unsent == 3000


CLOSED = [
    ClosedLoop(users=3, requests=30, warmup_requests=5),
    ClosedLoop(users=3, requests=30, warmup_requests=5, keep_up=True),
    ClosedLoop(users=3, requests=30, think_time_s=0.02),
    ClosedLoop(users=3, duration_s=1.0, warmup_s=0.2),
    ClosedLoop(users=2, duration_s=1.0, think_time_s=0.05, ramp_s=0.1),
    ClosedLoop(users=2, requests=40, pacing_s=0.05),
    ClosedLoop(users=2, duration_s=1.0, pacing_s=0.05, ramp_s=0.1),
]


@pytest.mark.parametrize("arrivals", CLOSED)
@settings(max_examples=12, deadline=None)
@given(WORLDS)
def test_users_plan_the_next_request_by_the_end_of_the_last_their_think_time_and_their_pace(
    arrivals: ClosedLoop, world: World
) -> None:
    world.service_ns = max(world.service_ns, 5 * MS)  # by time, a server of no time has no end
    think_ns, pace_ns = round(arrivals.think_time_s * 1e9), round(arrivals.pacing_s * 1e9)
    for user, of_user in closed(world, arrivals).items():
        assert of_user[0].planned_ns == round(arrivals.ramp_s * 1e9 * user / arrivals.users)
        for before, after in pairwise(of_user):
            assert after.planned_ns == max(before.planned_ns + pace_ns, before.done_ns + think_ns)
            assert after.started_ns >= after.planned_ns


@pytest.mark.promise
def test_a_late_client_does_not_make_a_constant_pace_drift() -> None:
    pace = ClosedLoop(users=1, requests=20, pacing_s=0.05)
    requests = closed(World(late_ns=7 * MS, handling_ns=3 * MS), pace)
    assert [request.planned_ns for request in requests[0]] == [
        number * 50 * MS for number in range(20)
    ]


class Paced(User):
    pacing_s = 0.05

    @action
    async def ask(self) -> None:
        await self.get("/", name="first")
        await self.get("/", name="second")


class Pausing(Paced):
    pacing_s = 0.0
    wait_s = 0.05


class Resting(User):
    @action
    async def ask(self) -> None:
        await self.get("/")
        assert await self.pause(0.25)
        await self.get("/")
        assert not await self.pause(1000)


class CutOff(User):
    @action
    async def ask(self) -> None:
        await self.get("/")
        assert not await self.pause(1000)
        await self.get("/")
        assert not await self.pause(1000)
        await self.get("/")


class Working(Pausing):
    """A user that works 20 ms after each answer."""

    world: World

    @action
    async def ask(self) -> None:
        await self.get("/")
        self.world.now_ns += 20 * MS


def acted(world: World, kind: str, folder: Path, **words: object) -> list[Sent]:
    arrivals = Scripted.model_validate(
        {"script": f"{__name__}:{kind}", "users": 1, "duration_s": 1.0, **words}
    )
    folder.mkdir(parents=True, exist_ok=True)
    driver = ScriptedDriver(
        arrivals, range(arrivals.users), world, ORIGIN, Connections(), world, world.record, folder
    )
    with patch.object(scripted, "clock", world.clock):
        return world.live(driver.run(START_NS))


@pytest.mark.parametrize("kind", ["Paced", "Pausing"])
@settings(max_examples=12, deadline=None)
@given(world=WORLDS)
def test_scripted_users_keep_their_pace_or_wait_from_the_last_answer_on_however_late_the_client_is(
    tmp_path_factory: pytest.TempPathFactory, kind: str, world: World
) -> None:
    requests = acted(world, kind, tmp_path_factory.mktemp("users"))
    firsts = [request for request in requests if request.template == 0]
    ends = [request.done_ns for request in requests if request.template == 1]
    assert firsts
    for (before, after), end_ns in zip(pairwise(firsts), ends, strict=False):
        paced_ns = max(before.planned_ns + 50 * MS, end_ns)
        assert after.planned_ns == (paced_ns if kind == "Paced" else end_ns + 50 * MS)


class Naming(User):
    """A user who gives every request another name."""

    @action
    async def ask(self) -> None:
        await self.get(f"/{self.course.over_ns}")


def test_more_names_of_requests_than_a_summary_has_rows_for_are_refused(tmp_path: Path) -> None:
    with patch.object(scripted, "MOST_NAMES", 3):
        sent = acted(World(handling_ns=MS), "Naming", tmp_path, actions=9)
    # The others are failures of the script.
    assert sorted(request.template for request in sent) == [0, 1, 2, *[3] * 6]


def test_a_pause_counts_from_the_last_answer_and_ends_with_the_load(tmp_path: Path) -> None:
    first, second = acted(World(late_ns=7 * MS, handling_ns=3 * MS), "Resting", tmp_path, actions=1)
    assert second.planned_ns == first.done_ns + 250 * MS


def test_a_request_after_a_pause_that_the_end_cut_off_was_planned_no_later_than_it_began(
    tmp_path: Path,
) -> None:
    requests = acted(World(late_ns=7 * MS, handling_ns=3 * MS), "CutOff", tmp_path, actions=1)
    assert all(request.planned_ns <= request.started_ns for request in requests)
    # Without the waits that the end cut off they are not the load that was asked for.
    assert [request.stage for request in requests] == [MEASURE, AFTER, AFTER]


def test_time_that_a_script_takes_after_the_last_answer_is_added_to_the_wait(
    tmp_path: Path,
) -> None:
    world = World(late_ns=7 * MS, handling_ns=3 * MS)
    Working.world = world
    requests = acted(world, "Working", tmp_path)
    assert len(requests) > 5
    for before, after in pairwise(requests):
        assert after.planned_ns == before.done_ns + 20 * MS + 50 * MS


def test_the_record_shows_as_many_users_at_any_time_as_the_plan_has() -> None:
    ramp = ClosedLoop(users=60, duration_s=40, pacing_s=5, ramp_s=30)
    by_user = closed(World(service_ns=S, late_ns=3 * MS), ramp)
    joined_ns = [min(request.planned_ns for request in requests) for requests in by_user.values()]
    assert len(set(joined_ns)) == 60
    for at_s in (0.0, 0.499, 0.5, 7.3, 29.4, 29.5, 35.0):
        recorded = sum(join_ns <= at_s * S for join_ns in joined_ns)
        assert recorded == active(ramp, round(at_s * S))
    assert active(ramp, 40 * S) == 0, "the load is over"


def test_scripted_users_join_one_by_one_and_a_burst_has_no_users() -> None:
    one_by_one = Scripted(script="a:B", users=5, duration_s=9, join_s=2)
    assert [active(one_by_one, at * S) for at in (0, 1, 2, 20)] == [1, 1, 2, 5]
    assert active(Burst(size=3), 0) is None


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
        rounds = [sorted(with_timer(work)) for _ in range(5)]
    finally:
        gc.enable()
    # With the loop's timer a tenth would be so punctual; other programs delay some rounds.
    assert min(late[60] for late in rounds) < MS / 10


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
