"""Capacity by search, the scatter of single runs that failures ended, and figures of streams."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from perflab.errors import ParameterError
from perflab.figures.origin import page_of
from perflab.instruments import UsersHeld
from perflab.instruments.users_held import held_columns, steps_table
from perflab.load.capacity import Probe, search
from perflab.recordings import Reason
from perflab.systems import experiment
from perflab.systems.llm.rules import judged_claims
from perflab.systems.llm.users_at_failure import (
    AT_LEAST,
    FAILURE_COLUMNS,
    VERSION_STYLES,
    draw_limits,
)
from tests.systems.llm.planted_streams import write_limits
from tests.systems.planned import plan_of

LATE = Reason(code="generator.late", side="client", text="the client was late")


@pytest.mark.parametrize(
    ("client_holds", "columns", "outcomes"),
    [
        (1000, {"users_held": 320, "users_missed": 334}, {"held", "missed"}),
        (100, {"users_held_at_least": 80}, {"held", "refused"}),
    ],
)
def test_users_held_are_those_of_the_last_step_that_held_or_a_bound_where_the_client_is_the_limit(
    client_holds: int, columns: dict[str, float], outcomes: set[str]
) -> None:
    steps: list[Probe] = []

    def probe(level: float) -> Probe:
        missed = ("ttft_p95",) if level > 333 else ()
        steps.append(Probe(level, missed, faults=(LATE,) if level > client_holds else ()))
        return steps[-1]

    held = held_columns(search(probe, 40, 1000, repeats=1, whole=True))
    assert {name: held[name] for name in columns} == columns
    assert ("users_held_at_least" in columns) == math.isnan(held["users_held"])
    table = steps_table(steps)
    assert set(table["outcome"]) == outcomes
    assert len(table) == held["capacity_steps"]


def test_versions_are_searched_with_the_same_load_and_room_for_all_users() -> None:
    plan = plan_of("llm_streaming", sets=["capacity"], search_most=900)
    assert [treatment.levels["rung"] for treatment in plan.treatments] == [
        "capacity_old", "capacity_new", "capacity_raw",
    ]  # fmt: skip
    assert len({treatment.workload.model_dump_json() for treatment in plan.treatments}) == 1
    for treatment in plan.treatments:
        # The search comes first, because other instruments probe right before the load.
        assert isinstance(treatment.instruments[0], UsersHeld)
        assert int(treatment.stack.nodes[1].settings["max_files"]) > 2 * 900


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"objectives": ["ttft_p95"]}, "is not like"),
        ({"search_most": 30}, "start = 40 users is above most = 30"),
    ],
)
def test_a_search_that_can_find_nothing_is_refused(wrong: dict[str, object], words: str) -> None:
    chosen = experiment("llm_streaming")
    with pytest.raises(ParameterError, match=words):
        chosen.plan(chosen.check({"sets": ["capacity"], **wrong}))


@pytest.mark.parametrize(
    ("scatter", "verdict"),
    [
        (1.0, "in the direction published"),
        (40.0, "the other way"),
        (3.0, "not decided"),
    ],
)
def test_a_threshold_makes_runs_comparable_where_single_runs_seldom_lie_apart(
    scatter: float, verdict: str, tmp_path: Path
) -> None:
    run = write_limits(tmp_path, blocks=6, scatter=scatter)
    (claim,) = judged_claims(run)
    assert str(claim.verdict) == verdict
    assert "of pairs (the rule: 5% at most; 24 runs of 4 kinds" in claim.verdict.reason


def test_only_a_refused_trial_with_a_bound_is_drawn_hollow(tmp_path: Path) -> None:
    page = page_of(write_limits(tmp_path, blocks=1, scatter=1.0))
    trial = {"what": AT_LEAST, "version": "old", "limit": 128.0, "users": 90.0, "share": 5.0}
    colors = {}
    for state in ("valid", "invalid"):
        table = pd.DataFrame([{**trial, "state": state}]).reindex(columns=FAILURE_COLUMNS)
        (points,) = draw_limits(table, page).axes[0].collections
        colors[state] = to_hex(points.get_facecolor()[0])
    assert colors["invalid"] == to_hex("white")
    assert colors["valid"] == to_hex(VERSION_STYLES["old"].color)
