"""A bound is crossed only by a whole interval, and refused if it makes no sense."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.evaluation import Finding
from perflab.analysis.gates.thresholds import judged, thresholds_of
from perflab.analysis.results import Gate
from perflab.analysis.verdict import without_effect
from perflab.errors import ParameterError
from perflab.recordings import Contrast, Response
from perflab.recordings.responses import FAILURES
from perflab.statistics.comparison import effect_of


def finding(*ratios: float) -> Finding:
    """Return the finding of blocks with these ratios."""
    contrast = Contrast(
        name="new against old: p99_ms", claim="p99", response="p99_ms",
        numerator={"variant": "new"}, denominator={"variant": "old"},
    )  # fmt: skip
    effect = effect_of(pd.Series([math.log(ratio) for ratio in ratios])) if ratios else None
    verdict = without_effect(contrast, "no blocks")
    return Finding(contrast, Response(name="p99_ms", title="p99"), effect, verdict)


def result_of(text: str, *ratios: float) -> Gate:
    (threshold,) = thresholds_of([text])
    return threshold.judged(finding(*ratios))


SLOWER = (1.08, 1.09, 1.10, 1.11, 1.12, 1.13, 1.14, 1.15)
FEWER = (0.88, 0.89, 0.90, 0.91, 0.92, 0.90, 0.91, 0.89)


@pytest.mark.parametrize(
    ("ratios", "failed", "not_decided", "passed"),
    [
        (SLOWER, "p99>1.05", "p99>1.10", "p99>1.30"),
        (FEWER, "throughput<0.95", "throughput<0.90", "throughput<0.80"),
    ],
)
def test_a_bound_is_crossed_only_by_the_whole_interval(
    ratios: tuple[float, ...], failed: str, not_decided: str, passed: str
) -> None:
    assert result_of(failed, *ratios) is Gate.FAILED
    assert result_of(not_decided, *ratios) is Gate.NOT_DECIDED
    assert result_of(passed, *ratios) is Gate.PASSED


def test_a_bound_of_a_missing_comparison_is_neither_crossed_nor_held() -> None:
    assert result_of("p99>1.05") is Gate.NOT_JUDGED


@pytest.mark.parametrize("ratios", [(1.2,), (1.2, 1.2), (1.0, 1.0), (1.2, 1.2001), (1.2,) * 5])
@pytest.mark.promise
def test_too_few_blocks_or_blocks_without_any_spread_decide_no_bound(
    ratios: tuple[float, ...],
) -> None:
    assert result_of("p99>1.05", *ratios) is Gate.NOT_DECIDED
    assert result_of("p99>1.05", *[1.2, 1.2001, 1.2] * 2) is Gate.FAILED


@pytest.mark.parametrize(
    "text",
    [
        "p99<1.05", "throughput>1.05", "p99>0.9", "throughput<1.1", "p98>2", "p99", "failures>1",
        "throughput<0", "p99>0",
    ],
)  # fmt: skip
def test_a_bound_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="--fail-on"):
        thresholds_of([text])


@pytest.mark.parametrize("bounds", [2, 6])
def test_a_gate_of_several_bounds_fails_an_equal_version_in_one_of_twenty_runs(bounds: int) -> None:
    random = np.random.default_rng(7)
    (threshold,) = thresholds_of(["p99>1.05"])
    failed, sets = 0, 400
    for _ in range(sets):
        # All bounds are independent, and the truth is exactly the bound.
        ratios = 1.05 * np.exp(0.05 * random.standard_normal((bounds, 8)))
        results = judged([threshold], [finding(*row) for row in ratios])
        assert len(results) == bounds
        failed += any(result.result is Gate.FAILED for result in results)
    assert failed / sets <= 0.06


def of_failures(*points: float) -> Finding:
    """Return the finding of blocks with these differences of the share of failures."""
    contrast = Contrast(
        name="new against old: failures", claim="failures", response=FAILURES, scale="difference",
        numerator={"variant": "new"}, denominator={"variant": "old"},
    )  # fmt: skip
    effect = effect_of(pd.Series(points, dtype=float), scale="difference")
    verdict = without_effect(contrast, "")
    return Finding(contrast, Response(name=FAILURES, title=""), effect, verdict)


def test_a_bound_on_failures_among_many_is_judged_as_a_difference() -> None:
    random = np.random.default_rng(7)
    (threshold,) = thresholds_of(["failures>0.01"])
    failed, sets = 0, 400
    for _ in range(sets):
        points = 0.01 + 0.002 * random.standard_normal((6, 8))
        results = judged([threshold], [of_failures(*row) for row in points])
        failed += any(result.result is Gate.FAILED for result in results)
    assert failed / sets <= 0.06
    (none,) = thresholds_of(["failures>0"])
    more = [0.02, 0.03, 0.025, 0.021, 0.026, 0.024, 0.022, 0.028]
    results = judged([none], [of_failures(*more), *[of_failures(*[-1e-4, 1e-4] * 4)] * 3])
    assert [one.result is Gate.FAILED for one in results] == [True, False, False, False]


def test_of_many_bounds_one_that_is_clearly_crossed_still_fails() -> None:
    (threshold,) = thresholds_of(["p99>1.05"])
    equal = [finding(*[1.0, 1.01] * 4) for _ in range(4)]
    assert [one.result for one in judged([threshold], [finding(*SLOWER), *equal])] == [
        Gate.FAILED, *[Gate.PASSED] * 4,
    ]  # fmt: skip
