"""The windows of treatments in rounds, and their order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.load.workload import ClosedLoop
from perflab.trials.designs import Rounds
from perflab.trials.plan_obstacles import obstacles
from tests.trials.fakes import plan

NAMES = ("a", "b", "c")


@given(seed=st.integers(0, 2**63), rounds=st.integers(1, 30))
def test_every_treatment_has_one_window_in_every_round_and_the_seed_decides_when(
    seed: int, rounds: int
) -> None:
    design = Rounds(NAMES, rounds, seed=seed)
    names = [turn.treatment for turn in design.turns()]
    for begin in range(0, len(names), 3):
        assert sorted(names[begin : begin + 3]) == list(NAMES)
    assert design.turns() == Rounds(NAMES, rounds + 3, seed=seed).turns()[: 3 * rounds]
    assert all(len(design.windows(name).spans) == rounds for name in NAMES)


def test_slices_never_overlap_and_leave_a_gap_before_each() -> None:
    turns = Rounds(NAMES, 5, slice_ms=200).turns()
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
