"""How trials share their time where nobody says: by how long responses take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perflab import systems
from perflab.errors import LoadError, ParameterError
from perflab.load.workload import ClosedLoop, OpenLoop, Stage
from perflab.trials.choosing import Pace, choose, chosen, needed_slice_ms
from perflab.trials.designs import Design
from tests.trials.fakes import Residents, bench, plan

AUTO = Design(kind="auto")
CLOSED = ClosedLoop(users=2, duration_s=30.0, warmup_s=5.0, think_time_s=0.1)
OPEN = OpenLoop(stages=(Stage(rate=50, duration_s=20.0),), warmup_s=10.0)


@pytest.mark.parametrize(
    ("response_ms", "wait_ms", "backend", "slice_ms"),
    [
        (1.0, 0.0, "process", 50.0),
        # Of a gap, a fifth of the slice, three quarters are there to end in.
        (9.0, 0.0, "process", 60.0),
        (45.0, 0.0, "process", 300.0),
        (1.0, 0.0, "docker", 200.0),
        # Users come round five times.
        (2.0, 20.0, "process", 110.0),
        (float("inf"), 0.0, "process", float("inf")),
    ],
)
def test_a_slice_is_as_short_as_responses_and_users_allow(
    response_ms: float, wait_ms: float, backend: str, slice_ms: float
) -> None:
    assert needed_slice_ms([Pace(0.1), Pace(response_ms, wait_ms)], backend) == slice_ms


def test_short_responses_give_slices_and_long_ones_whole_trials() -> None:
    short = chosen(AUTO, {"a": Pace(2.0), "b": Pace(3.0)}, "process")
    assert (short.kind, short.slice_ms) == ("slices", 50.0)
    assert short.why == "95% of the responses came within 3 ms"
    slow = chosen(AUTO, {"a": Pace(2.0), "b": Pace(46.0)}, "process")
    assert slow.kind == "trials"
    assert "slices would have to last 310 ms" in slow.why
    # Who asks for slices gets them, as long as they have to be.
    asked = chosen(Design(kind="slices"), {"a": Pace(2.0), "b": Pace(46.0)}, "process")
    assert (asked.kind, asked.slice_ms) == ("slices", 310.0)
    paces = {"a": Pace(2.0), "b": Pace(float("inf"))}
    silent = chosen(AUTO, paces, "process")
    assert (silent.kind, silent.why) == ("trials", "nothing was answered when it was looked at")
    assert chosen(Design(kind="slices"), paces, "process").kind == "slices"


@pytest.mark.parametrize("fresh_blocks", [0, 1])
def test_after_a_look_services_are_as_fresh_as_they_will_be(
    tmp_path: Path, fresh_blocks: int
) -> None:
    residents = Residents()
    made = plan(design=AUTO, fresh_blocks=fresh_blocks)
    assert choose(bench(tmp_path, residents), made, "process").kind == "trials"
    assert residents.notes.count("start") == fresh_blocks


def test_where_nothing_can_be_seen_whole_trials_are_taken_and_say_why(tmp_path: Path) -> None:
    residents = Residents()
    broken = bench(tmp_path, residents, fails=LoadError("a worker died\nat once"))
    design = choose(broken, plan(design=AUTO), "process")
    assert design.kind == "trials"
    assert design.why == "how long responses take could not be seen: a worker died"
    assert residents.notes[-2:] == ["stop", "start"]


def test_services_of_ones_own_leave_it_open_and_a_length_goes_with_slices_alone() -> None:
    own = systems.experiment("custom_service")
    assert not own.plan(own.check({})).design.is_settled
    given: dict[str, Any] = {"slice_ms": 100}
    with pytest.raises(ParameterError, match="slice_ms = 100 goes with design = slices"):
        own.check(given)
    assert own.plan(own.check({**given, "design": "slices"})).design.slice_ms == 100
