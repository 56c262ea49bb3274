"""A rate of k of n has its exact interval."""

from __future__ import annotations

import pytest

from perflab.statistics.two_samples import Rate


def test_four_of_four_may_still_be_two_of_five() -> None:
    assert Rate(4, 4).text() == "4 of 4: 100% [40%, 100%]"
    assert Rate(0, 0).text() == "no case"


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (3, 8), (19, 20)])
def test_the_ends_are_those_of_clopper_and_pearson(hits: int, n: int) -> None:
    from scipy import stats

    low, high = Rate(hits, n).interval
    assert hits == 0 or stats.binom.sf(hits - 1, n, low) == pytest.approx(0.025)
    assert stats.binom.cdf(hits, n, high) == pytest.approx(0.025)
