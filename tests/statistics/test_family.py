"""Several claims in one run: p-values corrected, and the level kept by simulation."""

from __future__ import annotations

import math

import pytest

from perflab.statistics.families import blocks_for_one, corrected


def test_p_values_are_adjusted_and_the_family_is_counted() -> None:
    found = corrected([0.01, math.nan, 0.04, 0.03])
    assert [each.adjusted for each in found] == pytest.approx(
        [0.03, math.nan, 0.04, 0.04], nan_ok=True
    )
    assert {each.claims for each in found} == {3}
    assert [each.holds for each in found] == [True, False, True, True]
    assert found[0].text() == "p, adjusted for 3 claims, is 0.03"


def test_a_claim_knows_which_p_it_would_need() -> None:
    lonely = corrected([0.0078, *[0.5] * 14])[0]
    assert not lonely.holds
    assert lonely.own_level == pytest.approx(0.05 / 15)
    assert corrected([0.0])[0].own_level == 0.05
    assert corrected([0.03])[0].own_level == 0.05


def test_claims_about_another_response_are_another_family() -> None:
    found = corrected([0.01, 0.04, 0.03], ["p50", "p90", "p90"])
    assert [each.adjusted for each in found] == pytest.approx([0.01, 0.04, 0.04])
    assert [each.claims for each in found] == [1, 2, 2]


@pytest.mark.parametrize("claims", [1, 6, 7, 12, 13, 100])
def test_as_many_blocks_as_are_said_can_show_one_effect_among_claims(claims: int) -> None:
    needed = blocks_for_one(claims)
    assert corrected([2 / 2**needed, *[1.0] * (claims - 1)])[0].holds
    assert needed == 6 or not corrected([2 / 2 ** (needed - 1), *[1.0] * (claims - 1)])[0].holds
