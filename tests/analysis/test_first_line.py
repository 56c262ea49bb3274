"""The first line of a duel errs in one of twenty duels at most, whatever it may name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perflab.analysis.gates.first_line import (
    FAMILIES,
    are_of_a_duel,
    corrected_over_first_line,
    fewest_blocks,
    fewest_blocks_of_pairs,
)
from perflab.recordings import Contrast
from perflab.statistics.families import holm, smallest_p

CPU, MEMORY, FAILURES = "service_cpu_us_per_request", "service_memory_bytes", "failure_share"
RESPONSES = ("throughput_rps", "mean_ms", "p50_ms", "p99_ms", CPU, MEMORY, FAILURES)


def contrasts_of(pairs: int, **changes: str) -> list[Contrast]:
    return [
        Contrast(
            name=f"{number} {response}", claim=response, response=response,
            numerator={"variant": f"new{number}"}, denominator={"variant": "old"}, **changes,
        )
        for number in range(pairs)
        for response in RESPONSES
    ]  # fmt: skip


def holds(pairs: int, p_values: list[float]) -> list[bool]:
    return [each.holds for each in corrected_over_first_line(contrasts_of(pairs), p_values)]


def test_holm_adjusts_each_p_value_for_those_that_are_left() -> None:
    assert holm([0.01, math.nan, 0.04, 0.03]) == pytest.approx(
        [0.03, math.nan, 0.06, 0.06], nan_ok=True
    )
    assert holm([]) == []


@pytest.mark.parametrize("pairs", [1, 3])
def test_of_equal_copies_at_most_one_duel_in_twenty_names_a_difference(pairs: int) -> None:
    random, sets = np.random.default_rng(3), 400
    named = sum(any(holds(pairs, list(random.random(7 * pairs)))) for _ in range(sets))
    # Three standard errors of 5% of 400.
    assert named / sets <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / sets)


def test_mean_and_cpu_are_one_family_and_all_others_a_second_at_half_the_level_each() -> None:
    assert holds(1, [1, 0.012, 1, 1, 1, 1, 1]) == [False, True, *[False] * 5]
    assert holds(1, [1, 0.013, 1, 1, 0.5, 1, 1]) == [False] * 7
    # The second of two may be as large as the whole half.
    assert holds(1, [1, 0.012, 1, 1, 0.025, 1, 1])[4]
    assert holds(1, [1, 1, 1, 0.006, 1, 1, 1])[3]
    assert not holds(1, [1, 1, 1, 0.007, 1, 1, 1])[3]


def test_the_families_hold_the_questions_of_all_pairs() -> None:
    alone, others = [1, 0.012, 1, 1, 1, 1, 1], [1.0] * 7
    assert holds(1, alone)[1]
    assert not holds(2, [*alone, *others])[1]
    assert corrected_over_first_line(contrasts_of(2), [*alone, *others])[1].claims == 12


def test_throughput_is_the_mean_again() -> None:
    assert holds(1, [0.02, 0.012, 1, 1, 1, 1, 1])[0]
    assert not holds(1, [0.001, 0.03, 1, 1, 1, 1, 1])[0]
    # Where the mean is unknown, and of an open loop, whose rate is set.
    assert holds(1, [0.02, math.nan, 1, 1, 1, 1, 1])[0]
    assert math.isnan(
        corrected_over_first_line(contrasts_of(1), [math.nan, 1, 1, 1, 1, 1, 1])[0].adjusted
    )


def test_what_a_study_published_is_no_duel() -> None:
    assert are_of_a_duel(contrasts_of(1))
    assert not are_of_a_duel(contrasts_of(1, source="a study"))
    assert not are_of_a_duel([])


@pytest.mark.parametrize("pairs", [1, 2, 3, 4, 8])
def test_the_fewest_blocks_can_show_one_difference_of_all_that_may_be_named(pairs: int) -> None:
    needed, largest = fewest_blocks_of_pairs(pairs), pairs * max(map(len, FAMILIES.values()))
    assert fewest_blocks(contrasts_of(pairs)) == needed
    assert 2 * smallest_p(needed) * largest <= 0.025 < 2 * smallest_p(needed - 1) * largest


def test_a_duel_of_two_has_one_block_to_spare_by_default() -> None:
    assert fewest_blocks_of_pairs(1) + 1 == 10
