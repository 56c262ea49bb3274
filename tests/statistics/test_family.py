"""Several claims in one run: p-values corrected, and the level kept by simulation."""

from __future__ import annotations

import math

import pytest

from perflab.statistics.families import blocks_for_one, corrected


def test_p_values_are_adjusted_and_the_family_is_counted() -> None:
    results = corrected([0.01, math.nan, 0.04, 0.03])
    assert {result.claims for result in results} == {3}
    assert [result.holds for result in results] == [True, False, True, True]
    assert results[0].text() == "p, adjusted for 3 claims, is 0.03"


def test_a_claim_knows_the_p_that_it_would_need() -> None:
    lonely = corrected([0.0078, *[0.5] * 14])[0]
    assert not lonely.holds
    assert lonely.needed_p == pytest.approx(0.05 / 15)
    assert corrected([0.0])[0].needed_p == 0.05
    assert corrected([0.03])[0].needed_p == 0.05


def test_claims_about_another_response_are_another_family() -> None:
    results = corrected([0.01, 0.04, 0.03], ["p50", "p90", "p90"])
    assert [result.adjusted for result in results] == pytest.approx([0.01, 0.04, 0.04])
    assert [result.claims for result in results] == [1, 2, 2]


@pytest.mark.parametrize("claims", [1, 6, 7, 12, 13, 100])
def test_blocks_for_one_is_the_fewest_that_can_show_one_effect_among_claims(claims: int) -> None:
    needed = blocks_for_one(claims)
    assert corrected([2 / 2**needed, *[1.0] * (claims - 1)])[0].holds
    assert needed == 6 or not corrected([2 / 2 ** (needed - 1), *[1.0] * (claims - 1)])[0].holds
