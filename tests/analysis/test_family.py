"""Several claims in one run: p-values corrected, and the level kept by simulation."""

from __future__ import annotations

import math

import pytest

from perflab.analysis.methods.family import corrected


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
