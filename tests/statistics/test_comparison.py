"""Ratios of paired trials: known answers, coverage, and refusal of what cannot be compared."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from perflab.errors import AnalysisError
from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import Blocks, benjamini_hochberg, effect_of, effect_within
from perflab.statistics.families import blocks_for_one, corrected
from perflab.statistics.signed_rank import (
    hodges_lehmann,
    interval,
    null_cdf,
    p_value,
    walsh_averages,
)
from tests.statistics.paired import compare


def series(values) -> pd.Series:
    return pd.Series(np.asarray(values, dtype=float))


def from_logs(logs) -> tuple[pd.Series, pd.Series]:
    return series(np.exp(logs)), series(np.ones(len(logs)))


def test_walsh_averages_by_hand() -> None:
    assert list(walsh_averages(np.array([1.0, 2.0, 6.0]))) == [1.0, 1.5, 2.0, 3.5, 4.0, 6.0]
    assert hodges_lehmann(np.array([1.0, 2.0, 6.0])) == 2.75


@pytest.mark.parametrize("n", [1, 3, 6, 9])
def test_the_null_distribution_equals_that_of_all_signs(n: int) -> None:
    ranks = np.arange(1, n + 1)
    sums = np.array([(np.array(signs) * ranks).sum() for signs in product((0, 1), repeat=n)])
    by_hand = [(sums <= w).mean() for w in range(n * (n + 1) // 2 + 1)]
    assert null_cdf(n) == pytest.approx(by_hand)


@pytest.mark.parametrize("n", [6, 7, 10, 12])
@pytest.mark.promise
def test_the_interval_holds_exactly_the_centres_that_the_test_accepts(n: int) -> None:
    x = np.random.default_rng(n).normal(0.3, 1, n)
    ends = interval(x, 0.95)
    assert ends is not None
    low, high, _ = ends
    width = high - low

    def accepted(centre: float) -> bool:
        return bool(stats.wilcoxon(x - centre, method="exact").pvalue > 0.05)

    edge = 1e-9 * width
    for inside in (low + edge, high - edge, (low + high) / 2):
        assert accepted(inside)
    for outside in (low - edge, high + edge, low - width, high + width):
        assert not accepted(outside)


@pytest.mark.promise
def test_six_pairs_reach_97_percent_with_their_extremes() -> None:
    logs = np.array([0.1, 0.4, 0.2, 0.6, 0.3, 0.5])
    effect = compare(*from_logs(logs))
    assert effect.low == pytest.approx(math.exp(0.1))
    assert effect.high == pytest.approx(math.exp(0.6))
    assert effect.confidence == pytest.approx(1 - 2 / 64)
    assert effect.p_value == pytest.approx(2 / 64)
    assert effect.n == 6


def test_below_six_pairs_it_is_student() -> None:
    logs = np.array([0.1, 0.2, 0.4])
    effect = compare(*from_logs(logs))
    expected = stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs))
    assert (math.log(effect.low), math.log(effect.high)) == pytest.approx(expected)
    assert effect.estimate == pytest.approx(math.exp(logs.mean()))
    assert effect.p_value == pytest.approx(stats.ttest_1samp(logs, 0).pvalue)


positive = st.lists(st.floats(0.01, 1e4), min_size=2, max_size=12)


@given(positive, st.integers(0, 2**32 - 1))
def test_swapping_the_sides_inverts_everything(values: list[float], seed: int) -> None:
    other = np.random.default_rng(seed).permutation(values)
    one, back = compare(series(values), series(other)), compare(series(other), series(values))
    assert one.estimate == pytest.approx(1 / back.estimate)
    assert one.low == pytest.approx(1 / back.high, nan_ok=True)
    assert one.high == pytest.approx(1 / back.low, nan_ok=True)
    assert one.p_value == pytest.approx(back.p_value, nan_ok=True)
    assert not one.low > one.estimate * (1 + 1e-9)
    assert not one.estimate > one.high * (1 + 1e-9)


@pytest.mark.promise
def test_a_missing_side_is_left_out() -> None:
    effect = compare(series([2, 2.2, math.nan, 2.4]), pd.Series([1.0, 1.0, 1.0], index=[0, 1, 2]))
    assert effect.n == 2


def test_one_pair_has_a_ratio_and_no_interval() -> None:
    effect = compare(series([3.0]), series([2.0]))
    assert effect.estimate == pytest.approx(1.5)
    assert math.isnan(effect.low)
    assert math.isnan(effect.p_value)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.promise
def test_a_few_equal_blocks_hide_the_noise_and_show_nothing(n: int) -> None:
    effect = effect_of(series([0.3] * n))
    assert math.isnan(effect.low)
    assert math.isnan(effect.p_value)
    assert effect.blocks is not None
    assert effect.blocks.has_no_spread


def test_six_equal_blocks_have_the_p_value_of_their_ranks() -> None:
    effect = effect_of(series([0.3] * 6))
    assert effect.p_value == pytest.approx(2 / 64)
    assert effect.low == effect.high == pytest.approx(math.exp(0.3))


def whole_ms(above: list[float], below: list[float]) -> Ends:
    """Return the ends of ratios of times that were rounded to whole ms."""

    def rounded(values: list[float]) -> Ends:
        told = np.round(series(values))
        return Ends(told - 0.5, told + 0.5, told, 1.0).logs("x")

    return rounded(above).minus(rounded(below))


def test_times_in_whole_ms_differ_only_beyond_their_rounding() -> None:
    # 3 and 4 ms may be 3.5 and 3.5 ms, but 3 and 6 ms cannot.
    apart, twice = (effect_within(whole_ms([ms] * 8, [3] * 8)) for ms in (4, 6))
    assert (apart.low, apart.high) == pytest.approx((1.0, 4.5 / 2.5))
    assert apart.estimate == pytest.approx(4 / 3)
    assert apart.p_value == 1.0
    assert twice.low == pytest.approx(5.5 / 3.5)
    assert twice.p_value == pytest.approx(2 / 2**8)
    # Of few blocks, equal ones may have differed by as much as a step.
    few = effect_within(whole_ms([6] * 3, [3] * 3))
    assert few.low < 1 < few.high
    assert few.p_value > 0.05


@given(st.lists(st.tuples(st.floats(1, 50), st.floats(1, 50)), min_size=6, max_size=10))
def test_the_interval_of_rounded_times_holds_that_of_the_exact_ones(
    pairs: list[tuple[float, float]],
) -> None:
    above, below = (list(side) for side in zip(*pairs, strict=True))
    exact = compare(series(above), series(below))
    rounded = effect_within(whole_ms(above, below))
    assert rounded.low <= exact.low * (1 + 1e-9)
    assert exact.high <= rounded.high * (1 + 1e-9)
    if rounded.p_value <= 0.05:
        assert exact.p_value <= 0.05


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        ([], [], "nothing to compare"),
        ([math.nan], [1.0], "nothing to compare"),
        ([0.0, 1.0], [1.0, 1.0], "numerator of block 0 is 0"),
        ([1.0], [-1.0], "block 0"),
        ([math.inf], [1.0], "inf"),
    ],
)
def test_values_without_a_ratio_are_refused(one, two, words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        compare(series(one), series(two))


differences = st.lists(st.integers(-40, 60).map(lambda n: n / 37), min_size=2, max_size=14)


@given(differences)
# Four Walsh averages are at most 0, one too many for 8 blocks; one of them is 0.
@example([-3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
@pytest.mark.promise
def test_the_interval_leaves_out_no_effect_exactly_where_p_is_0_05_at_most(x: list[float]) -> None:
    effect = effect_of(pd.Series(x), scale="difference")
    # A t interval that ends at 0, except for rounding, is not checked.
    assume(min(abs(effect.low), abs(effect.high)) > 1e-9 or len(x) >= 6)
    excluded = effect.low > 0 or effect.high < 0
    assert excluded == (effect.p_value <= 0.05)


@pytest.mark.parametrize("n", [3, 5, 6, 8, 12])
def test_the_90_percent_interval_lies_within_that_of_95(n: int) -> None:
    effect = effect_of(pd.Series(np.random.default_rng(n).normal(0.1, 1, n)))
    assert effect.low <= effect.narrow_low <= effect.narrow_high <= effect.high
    assert effect.confidence >= 0.95


@pytest.mark.promise
def test_benjamini_hochberg_by_hand() -> None:
    adjusted = benjamini_hochberg([0.01, math.nan, 0.04, 0.03])
    assert adjusted[0] == pytest.approx(0.03)
    assert math.isnan(adjusted[1])
    assert adjusted[2:] == pytest.approx([0.04, 0.04])
    assert benjamini_hochberg([]) == []


def test_many_blocks_give_the_p_value_of_the_normal_distribution() -> None:
    x = np.random.default_rng(1).normal(0.05, 1, 1000)
    assert p_value(x) == pytest.approx(stats.wilcoxon(x, method="asymptotic").pvalue, rel=0.01)


def test_a_claim_knows_the_p_that_it_would_need() -> None:
    lonely = corrected([0.0078, *[0.5] * 14])[0]
    assert not lonely.holds
    assert lonely.needed_p == pytest.approx(0.05 / 15)
    assert corrected([0.0])[0].needed_p == 0.05
    assert corrected([0.03])[0].needed_p == 0.05


def test_claims_about_another_response_are_another_family() -> None:
    results = corrected([0.01, math.nan, 0.04, 0.03], ["p50", "p90", "p90", "p90"])
    adjusted = [result.adjusted for result in results]
    assert adjusted == pytest.approx([0.01, math.nan, 0.04, 0.04], nan_ok=True)
    assert [result.claims for result in results] == [1, 2, 2, 2]
    assert [result.holds for result in results] == [True, False, True, True]


@pytest.mark.parametrize("claims", [1, 6, 7, 12, 13, 100])
def test_blocks_for_one_is_the_fewest_that_can_show_one_effect_among_claims(claims: int) -> None:
    needed = blocks_for_one(claims)
    assert corrected([2 / 2**needed, *[1.0] * (claims - 1)])[0].holds
    assert needed == 6 or not corrected([2 / 2 ** (needed - 1), *[1.0] * (claims - 1)])[0].holds


def test_no_effect_between_the_ends_has_no_small_p_value_whatever_one_block_does() -> None:
    one_far = np.append(np.full(11, 0.01), 5.0)
    blocks = Blocks(low=one_far - 0.02 * (one_far < 1), measured=one_far, high=one_far)
    assert blocks.interval(0.95).low < 0 < blocks.interval(0.95).high
    assert blocks.p_value(0.0) == 1.0
