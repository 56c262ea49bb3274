"""A ratio to requests that were cut off is a bound in effects, verdicts, tables and documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.analysis.decision import Kind
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.verdict import Outcome, Size, Way, judge
from perflab.errors import AnalysisError
from perflab.recordings import Contrast, Run
from perflab.statistics.comparison import Ends, bounded, effect_of
from perflab.statistics.in_words import at_least, at_most
from tests.support.examples import examples
from tests.support.synthetic import TIMEOUT_MS, USERS, Planted, contrast_of, write_run

BLOCKED = Planted({"handler": "blocking"}, label="blocking handler", times_out=True)
THREADS = Planted({"handler": "threads"}, label="threads")
# Each user waits for its answer: at 400/s the answers to 20 users take 50 ms.
RATE = USERS / 0.05
PUBLISHED = {
    "response": "mean_ms", "published_ratio": 0.17, "published_direction": "smaller",
    "published_bound": "at most", "claim": "threads end the wait",
}  # fmt: skip


def claim(**changes: Any) -> Contrast:
    return contrast_of(THREADS, BLOCKED, **{**PUBLISHED, **changes})


def study(root: Path, base_rps: float = RATE) -> Run:
    return write_run(
        root, treatments=(BLOCKED, THREADS), contrasts=[claim()], base_rps=base_rps, requests=100,
        database=False,
    )  # fmt: skip


def finding_of(run: Run) -> Finding:
    (finding,) = evaluate(run)
    return finding


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def measured(run: Run) -> Finding:
    return finding_of(run)


def series(values: Sequence[float]) -> pd.Series[Any]:
    return pd.Series(values, index=range(len(values)), dtype=float)


def test_a_ratio_to_requests_that_timed_out_is_an_upper_bound(run: Run, measured: Finding) -> None:
    effect = measured.effect
    assert effect is not None
    assert (effect.bound, effect.low, effect.n) == ("at most", 0.0, 6)
    assert math.isnan(effect.estimate)
    means = run.valid_trials().set_index("treatment").loc[THREADS.name, "mean_ms"]
    assert means.min() / TIMEOUT_MS < effect.limit
    assert effect.limit == effect.high < 2 * means.max() / TIMEOUT_MS


@pytest.mark.parametrize(
    ("ends", "side", "limits", "shows"),
    [
        (Ends(series([-math.inf] * 8), series(range(-9, -1))), "at most", (-math.inf, -2), True),
        (Ends(series([-math.inf] * 8), series(range(-4, 4))), "at most", (-math.inf, 3), False),
        (Ends(series(range(2, 10)), series([math.inf] * 8)), "at least", (2, math.inf), True),
        (Ends(series(range(-4, 4)), series([math.inf] * 8)), "at least", (-4, math.inf), False),
    ],
)
def test_a_difference_to_requests_that_were_cut_off_is_open_on_one_side(
    ends: Ends, side: str, limits: tuple[float, float], shows: bool
) -> None:
    effect = bounded(ends, "difference")
    assert effect.bound == side
    assert math.isinf(effect.low if side == "at most" else effect.high)
    assert limits[0] <= effect.low <= effect.high <= limits[1]
    assert (effect.p_value < 0.05) == shows
    plain = effect_of(ends.high if side == "at most" else ends.low, scale="difference")
    narrow = (effect.low, plain.narrow_high), (plain.narrow_low, effect.high)
    assert (effect.narrow_low, effect.narrow_high) == narrow[side == "at least"]


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=6, max_size=10),
    st.data(),
    st.sampled_from(["at most", "at least"]),
)
def test_a_bound_is_never_tighter_than_the_interval_of_the_values_behind_it(
    values: list[float], data: st.DataObject, side: str
) -> None:
    sign = 1 if side == "at most" else -1
    shifts = [sign * data.draw(st.floats(0, 2)) for _ in values]
    loose = series([value + shift for value, shift in zip(values, shifts, strict=True)])
    ends = Ends(series([-math.inf] * len(values)), loose)
    if side == "at least":
        ends = Ends(loose, series([math.inf] * len(values)))
    exact, bound = effect_of(series(values)), bounded(ends)
    assert bound.bound == side
    if side == "at most":
        assert exact.high <= bound.high * (1 + 1e-9)
        assert exact.narrow_high <= bound.narrow_high * (1 + 1e-9)
    else:
        assert exact.low >= bound.low * (1 - 1e-9)
    # If the bound shows an effect, the values do too.
    if bound.p_value <= 0.05:
        assert exact.p_value <= 0.05


def test_requests_cut_off_on_both_sides_give_no_effect() -> None:
    cut = Ends(series([1.0, 1.0, 1.0]), series([math.inf] * 3)).logs("x")
    with pytest.raises(AnalysisError, match="cut off before their end on both sides"):
        bounded(cut.minus(cut))
    without_values = Ends(series([math.nan] * 3), series([math.nan] * 3))
    with pytest.raises(AnalysisError, match="nothing to compare"):
        bounded(without_values)


@pytest.mark.parametrize(
    ("changes", "outcome", "way", "size"),
    [
        # 50 ms against at least 300 ms: the bound of the ratio is 0.17 to 0.2; published is 0.2.
        ({}, Outcome.REPRODUCED, Way.SHOWN, Size.AGREES),
        ({"published_bound": ""}, Outcome.SIZE_UNDECIDED, Way.SHOWN, Size.UNDECIDED),
        (
            {"published_bound": "", "published_ratio": 0.9},
            Outcome.MORE, Way.SHOWN, Size.CONTRADICTED,
        ),
        ({"published_ratio": 0.02}, Outcome.SIZE_UNDECIDED, Way.SHOWN, Size.UNDECIDED),
        (
            {"published_ratio": None, "published_bound": ""},
            Outcome.DIRECTION_SHOWN, Way.SHOWN, None,
        ),
        (
            {"published_ratio": 2.0, "published_direction": "greater", "published_bound": ""},
            Outcome.NOT_REPRODUCED, Way.OPPOSITE, Size.CONTRADICTED,
        ),
    ],
)  # fmt: skip
def test_a_bound_shows_a_direction_excludes_a_size_and_agrees_only_with_a_published_bound(
    measured: Finding, changes: dict[str, Any], outcome: Outcome, way: Way, size: Size | None
) -> None:
    verdict = judge(measured.effect, claim(**changes))
    assert (verdict.outcome, verdict.direction, verdict.size) == (outcome, way, size)


def test_a_bound_above_no_effect_shows_nothing(tmp_path: Path) -> None:
    # At 50/s the answers to 20 users take 400 ms, longer than the time-out of the others.
    finding = finding_of(study(tmp_path, base_rps=USERS / 0.4))
    assert finding.effect is not None
    assert finding.effect.limit > 1
    assert finding.effect.p_value == 1.0
    assert finding.verdict.direction is Way.NOT_SHOWN
    assert finding.decision is not None
    assert finding.decision.kind is Kind.UNDECIDED


def test_an_exact_effect_agrees_with_a_published_bound_that_it_keeps() -> None:
    exact = effect_of(series([math.log(0.1 + 0.001 * number) for number in range(8)]))
    assert judge(exact, claim()).outcome is Outcome.REPRODUCED
    above = effect_of(series([math.log(0.5 + 0.001 * number) for number in range(8)]))
    assert judge(above, claim()).outcome is Outcome.LESS
    assert "at most 0.213" in judge(above, claim()).reason


def test_bounds_are_rounded_so_that_they_hold() -> None:
    assert at_most(0.21301) == "<= 0.214"
    assert at_least(0.21399) == ">= 0.213"
    assert at_most(0.21) == "<= 0.210"
    assert at_least(300_932.18) == ">= 300,932"
