"""The map of ratios over the flush cost that commits felt."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.recordings import Run
from perflab.systems import experiment
from perflab.systems.inference.experiments.flush_map import (
    INSIDE,
    OUTSIDE,
    WITH_NO_EFFECT,
    _where,
    flush_map,
)
from tests.support.synthetic import Planted, write_run

PARAMETERS = {"workers": [4], "round_trip_ms": [0], "commit_delay_us": [0, 5000]}


def write_map(folder: Path) -> Run:
    """Write a map in which off is 1.1 and 1.6 times as fast as on, and drivers are equal."""
    chosen = experiment("flush_map")
    plan = chosen.plan(chosen.check(PARAMETERS))
    ratios = {("off", "0"): 1.6, ("on", "0"): 1.6 / 1.1, ("on", "5000"): 1.0}
    treatments = [
        Planted(dict(treatment.levels), ratios[_key(treatment.levels)], treatment.label)
        for treatment in plan.treatments
    ]
    run = write_run(
        folder, treatments=treatments, contrasts=plan.contrasts, experiment="flush_map",
        requests=40, blocks=6, noise=0.01,
    )  # fmt: skip
    trials = run.valid_trials()
    felt = {("off", "0"): 0.2, ("on", "0"): 1.2, ("on", "5000"): 8.2}
    trials["phase_commit_p50_ms"] = [
        felt[row["factor_synchronous_commit"], row["factor_commit_delay_us"]] + 0.01 * row["block"]
        for row in trials.to_dict("records")
    ]
    run.valid_trials = lambda: trials  # type: ignore[method-assign]
    return run


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory):
    return flush_map(write_map(tmp_path_factory.mktemp("map")))


def _key(levels) -> tuple[str, str]:
    return levels["synchronous_commit"], levels["commit_delay_us"]


def test_a_cell_has_the_felt_flush_cost_and_not_the_planted_pause(table) -> None:
    felt = table.drop_duplicates("set_ms").set_index("set_ms")["felt_ms"].to_dict()
    assert felt == {0.0: pytest.approx(1.0), 5.0: pytest.approx(8.0)}


def test_the_published_ratio_is_marked_where_the_interval_holds_it(table) -> None:
    flush = table[table["ratio_of"] == "off against on"].set_index("set_ms")
    assert flush["ratio"].to_dict() == {
        0.0: pytest.approx(1.1, rel=0.03),
        5.0: pytest.approx(1.6, rel=0.03),
    }
    assert flush["published_is"].to_dict() == {0.0: OUTSIDE, 5.0: INSIDE}
    drivers = table[table["ratio_of"] == "async against sync"]
    assert set(drivers["published_is"]) == {OUTSIDE}
    assert (drivers["n"] == 6).all()


def test_an_interval_that_also_holds_no_effect_is_not_marked() -> None:
    assert _where(1.6, 1.2, 1.9) == INSIDE
    assert _where(1.6, 0.6, 4.0) == WITH_NO_EFFECT
    assert _where(1.6, 0.6, 1.5) == OUTSIDE
