"""How a block's trials share its time: loads in windows, and loads that cannot be cut."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.instruments import STANDARD, Requests
from perflab.load.workload import Burst, ClosedLoop, OpenLoop, Request, Stage, Workload
from perflab.load.workload.windows import COUNTED, END, instants_of
from perflab.recordings.columns import TURN_COLUMNS, TURNS
from perflab.recordings.design import Design
from perflab.trials.designs import Rounds
from perflab.trials.plan import RunPlan, Treatment, obstacles
from perflab.trials.slices import (
    failed_in_pause,
    judged_turns,
    measure_block,
    told_apart,
    turn_table,
)
from perflab.trials.summary import identity_columns
from perflab.trials.turns import TurnsTaken, take_turns
from tests.load.planted import BEGIN_NS
from tests.trials.fakes import Instance, Residents, bench, plan, treatment

CLOSED = ClosedLoop(users=3, duration_s=3.0, warmup_s=1.0, max_duration_s=10)
OPEN = OpenLoop(stages=(Stage(rate=100, duration_s=4.0),), warmup_s=1.0)


def treated(name: str, arrivals: Any = CLOSED, **words: Any) -> Treatment:
    load = Workload(request=Request(node="echo"), arrivals=arrivals, **words)
    return treatment(name).model_copy(update={"workload": load, "instruments": (Requests(),)})


def sharing(treatments: Sequence[Treatment]) -> RunPlan:
    """Return a plan whose treatments take turns."""
    of_run = plan(design=Design(kind="slices"))
    return of_run.model_copy(update={"treatments": tuple(treatments)})


@settings(deadline=None)
@given(
    slice_ms=st.floats(20, 5_000),
    length_s=st.floats(0.1, 10),
    warmup_s=st.one_of(st.just(0.0), st.floats(0.01, 5)),
    is_open=st.booleans(),
)
def test_the_counted_time_of_a_cut_load_stays_as_long_within_one_slice(
    slice_ms: float, length_s: float, warmup_s: float, is_open: bool
) -> None:
    loop: Any = ClosedLoop(users=1, duration_s=length_s, warmup_s=warmup_s)
    if is_open:
        stage = Stage(rate=50, duration_s=length_s + warmup_s)
        loop = OpenLoop(stages=(stage,), warmup_s=warmup_s)
    loads = dict.fromkeys("ab", treated("a", loop).workload)
    design = Design(kind="slices", slice_ms=slice_ms)
    rounds = Rounds.of(design, loads, seed=4, block=2)
    counted_s = []
    for name in loads:
        arrivals = rounds.workload(name, loads[name]).arrivals
        assert isinstance(arrivals, ClosedLoop | OpenLoop)
        windows = instants_of(arrivals)
        lengths_s = (windows[:, END] - windows[:, COUNTED]) / 1e9
        counted_s.append(lengths_s.sum())
        # The windows of the warm-up come first, and are as long as the warm-up.
        warm = lengths_s == 0
        assert not warm[np.flatnonzero(~warm)[0] :].any()
        assert warm.sum() * slice_ms / 1e3 >= warmup_s - 1e-6
    assert counted_s[0] == pytest.approx(counted_s[1])
    assert length_s - 1e-6 <= counted_s[0] <= length_s + slice_ms / 1e3


@pytest.mark.parametrize(
    ("arrivals", "words", "cause"),
    [
        (ClosedLoop(users=1, requests=10), {}, "has no length"),
        (Burst(size=3), {}, "bursts or scripted users"),
        (ClosedLoop(users=1, duration_s=3, ramp_s=1), {}, "users come and go"),
        (OpenLoop(stages=(Stage(rate=1, to_rate=9, duration_s=3),)), {}, "rate changes"),
        (CLOSED, {"stop": {"failures": 3}}, "failures may end this load"),
    ],
)
def test_loads_that_cannot_share_their_time_are_refused_with_the_way_out(
    arrivals: Any, words: Mapping[str, Any], cause: str
) -> None:
    in_slices = sharing([treated(name, arrivals, **words) for name in "ab"])
    (problem,) = (item for item in obstacles(in_slices) if "design" in item)
    assert cause in problem
    assert "design = trials" in problem
    assert in_slices.model_copy(update={"design": Design()}).hindrances() == []


def test_slices_of_nine_and_instruments_that_see_everybody_are_refused_before_the_start() -> None:
    three = [treated(name) for name in "abc"]
    assert sharing(three).hindrances() == []
    nine = [treated(name) for name in "abcdefghi"]
    assert "2 to 8 treatments" in sharing(nine).hindrances()[0]
    of_run = sharing([item.model_copy(update={"instruments": STANDARD}) for item in three[:2]])
    (problem,) = (item for item in obstacles(of_run) if "design" in item)
    assert "SchedulerAccounts, AcceptQueues cannot tell treatments apart" in problem
    # A settled plan leaves out the standard instruments that see everybody.
    in_slices = of_run.settled(Design(kind="slices", slice_ms=50))
    kinds = {type(item).__name__ for item in in_slices.treatments[0].instruments}
    assert kinds == {"Requests", "CpuSpeed"}
    assert [item for item in obstacles(in_slices) if "design" in item] == []


def test_slices_never_overlap_and_leave_a_gap_before_each() -> None:
    turns = Rounds(("a", "b", "c"), 5, slice_ms=200).turns()
    assert turns[0].start_s == pytest.approx(0.04)
    for before, after in pairwise(turns):
        assert after.start_s - before.end_s == pytest.approx(0.04)


def test_a_run_whose_loads_have_windows_is_refused() -> None:
    of_whole = plan()
    before = obstacles(of_whole)
    arrivals = ClosedLoop(users=1, duration_s=10, windows=Rounds(("a", "b"), 3).windows("a"))
    treatments = tuple(
        item.model_copy(
            update={"workload": item.workload.model_copy(update={"arrivals": arrivals})}
        )
        for item in of_whole.treatments
    )
    after = obstacles(of_whole.model_copy(update={"treatments": treatments}))
    (problem,) = set(after) - set(before)
    assert "leave windows out" in problem


ROUNDS = Rounds(("a", "b"), 50)


def turns_with(carried_over: int = 0) -> pd.DataFrame:
    """Return the table of 50 turns, with requests from the turn before."""
    windows = pd.DataFrame(
        {
            "window": range(50), "begin_ns": 0, "counted_ns": 0, "end_ns": 1,
            "finished": 10, "carried_over": carried_over,
        }
    )  # fmt: skip
    return turn_table(windows, pd.DataFrame({"round": range(50), "late_ns": 0}))


def test_many_late_turns_refuse_a_trial_and_carried_over_requests_give_a_warning() -> None:
    assert list(turns_with()) == list(TURN_COLUMNS)
    assert judged_turns(turns_with(), [], ROUNDS) == ([], [])
    reasons, (warning,) = judged_turns(turns_with(), range(25), ROUNDS)
    assert reasons == []
    assert warning.text.startswith("25 of 50 rounds do not count, because a turn began more than")
    (reason,), _ = judged_turns(turns_with(), range(26), ROUNDS)
    assert reason.text.startswith("26 of 50 rounds do not count")
    _, (warning,) = judged_turns(turns_with(carried_over=1), [], ROUNDS)
    assert "10% of the requests were under way" in warning.text


def test_a_trial_whose_response_times_contain_pauses_is_refused() -> None:
    table = turns_with(carried_over=1)
    assert judged_turns(table, [], ROUNDS, paused_share=0.05)[0] == []
    (reason,), warnings = judged_turns(table, [], ROUNDS, paused_share=0.06)
    assert "up to 6% longer on average" in reason.text
    assert "design = trials" in reason.text
    assert warnings == []


def test_requests_that_waited_while_their_service_was_paused_are_recorded_apart() -> None:
    requests = pd.DataFrame(
        {
            "planned_ns": [10, 20, 55, 20], "done_ns": [30, 50, 70, 50], "window": [0, 0, 1, 0],
            "stage": pd.Categorical(["measure", "measure", "measure", "warmup"]),
        }
    )  # fmt: skip
    recorded = told_apart(requests, np.array([[40, 55]]))
    assert recorded["stage"].tolist() == ["measure", "paused", "measure", "warmup"]
    assert "window" not in recorded
    untouched = told_apart(requests, np.zeros((0, 2), dtype=np.int64))
    assert untouched["stage"].tolist() == ["measure"] * 3 + ["warmup"]


class Two(Residents):
    """One service for each treatment, and one that both use."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.own, self.both = {name: Instance(0.1) for name in "ab"}, Instance(0.2)

    def active(self, name: str) -> dict[str, Instance]:
        return {"echo": self.own[name], "shared": self.both}


@pytest.mark.parametrize(("late", "paused"), [(0, False), (1, False), (99, False), (0, True)])
def test_rounds_with_a_late_turn_count_on_no_side_and_the_services_stay_as_they_are(
    tmp_path: Path, late: int, paused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Requests of 50 ms, one after the other, rest for a quarter of their time.
    pauses = BEGIN_NS + np.arange(100)[:, None] * 40_000_000 + np.array([0, 10_000_000])

    def planted(rounds: Rounds, *_: object) -> TurnsTaken:
        taken = [
            {
                "round": turn.round,
                "treatment": turn.treatment,
                "late_ns": 50_000_000 * (turn.treatment == "b" and turn.round < late),
            }
            for turn in rounds.turns()
        ]
        rests = dict.fromkeys(rounds.treatments, pauses[: 100 * paused])
        return TurnsTaken(pd.DataFrame(taken), rests)

    monkeypatch.setattr("perflab.trials.slices.take_turns", planted)
    two = Two()
    treatments = [treated(name, ClosedLoop(users=5, duration_s=0.2)) for name in "ab"]
    design = Design(kind="slices", slice_ms=40)
    benches = {name: bench(tmp_path / name, two, takes_s=0.0) for name in "ab"}
    identities = {
        name: identity_columns(0, place, 0, name, {"service": name})
        for place, name in enumerate("ab")
    }
    loads = {item.name: item.workload for item in treatments}
    rounds = Rounds.of(design, loads, seed=1, block=0)
    trials = dict(zip("ab", measure_block(benches, treatments, rounds, identities), strict=True))
    codes = {
        name: {reason.code for reason in trial.row["reasons"]} for name, trial in trials.items()
    }
    remarks = {
        name: {remark.code for remark in trial.row["warnings"]} for name, trial in trials.items()
    }
    for name in "ab":
        assert ("turns.late" in remarks[name]) == (late == 1)
        assert ("turns.late" in codes[name]) == (late == 99)
    assert ("turns.paused" in codes["a"]) == paused
    assert all(trial.services_whole for trial in trials.values())
    counting = rounds.rounds - (late == 1)
    assert all(len(trial.others[TURNS]) == counting for trial in trials.values())
    assert all("window" not in trial.requests for trial in trials.values())
    assert math.isnan(trials["a"].row["idle_cpu_share"])
    # The shared fake has no method to pause it, so nobody has.
    assert [math.isnan(trial.row["cpu_share_shared"]) for trial in trials.values()] == [True, True]


def test_only_a_request_that_failed_while_a_service_was_paused_is_found() -> None:
    requests = pd.DataFrame(
        {"planned_ns": [10, 10, 60], "done_ns": [35, 45, 70], "error": ["early", "", "late"]}
    )
    pauses = np.array([[40, 55]])
    assert failed_in_pause(requests, [pauses]) == ""
    assert failed_in_pause(requests, [np.zeros((0, 2), dtype=np.int64), pauses + 20]) == "late"
    assert failed_in_pause(requests, [pauses - 20]) == "early"


def test_where_nobody_is_paused_no_turn_is_late_and_nothing_waits() -> None:
    turns = take_turns(ROUNDS, {"a": [], "b": []}, start_ns=0)
    assert len(turns.table) == 100
    assert not turns.table["late_ns"].any()
    assert [len(spans) for spans in turns.pauses.values()] == [0, 0]
