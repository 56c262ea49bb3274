"""The pairs of treatments that a run compares, and an order that puts them side by side."""

from __future__ import annotations

from perflab.figures.theme import (
    PALETTE,
    compared_pairs,
    looks_of,
    side_by_side,
)
from perflab.recordings import Contrast, RunRecord
from tests.support.synthetic import Planted, contrast_of, variants, write_run


def record_of(root, treatments: list[Planted], claims: list[Contrast]) -> RunRecord:
    return write_run(root, treatments=treatments, contrasts=claims, blocks=1, requests=10).record


def test_each_pair_is_given_once_and_refused_claims_compare_nothing(tmp_path) -> None:
    a, b, c = variants(3)
    claims = [
        contrast_of(b, a), contrast_of(a, b, response="p50_ms"),
        contrast_of(c, a, not_testable="one core"),
    ]  # fmt: skip
    assert compared_pairs(record_of(tmp_path, [a, b, c], claims)) == [(b.name, a.name)]


def test_with_several_treatments_a_side_those_equal_in_other_factors_are_compared(tmp_path) -> None:
    four = [Planted({"driver": driver, "delay": delay}) for driver in "ab" for delay in ("0", "5")]
    claim = contrast_of(four[0], four[2]).model_copy(
        update={"numerator": {"driver": "a"}, "denominator": {"driver": "b"}}
    )
    names = [treatment.name for treatment in four]
    record = record_of(tmp_path, four, [claim])
    assert compared_pairs(record) == [(names[0], names[2]), (names[1], names[3])]
    assert side_by_side(record) == [names[0], names[2], names[1], names[3]]


def test_the_order_changes_no_treatments_colour(tmp_path) -> None:
    four = list(variants(4))
    record = record_of(tmp_path, four, [contrast_of(four[3], four[0])])
    looks = looks_of(record)
    assert list(looks) == [four[n].name for n in (0, 3, 1, 2)]
    assert [look.color for look in looks.values()] == [PALETTE[n] for n in (0, 3, 1, 2)]


def test_without_claims_the_order_is_that_of_the_record(tmp_path) -> None:
    three = list(variants(3))
    assert side_by_side(record_of(tmp_path, three, [])) == [treatment.name for treatment in three]
