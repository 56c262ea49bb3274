"""Runs that end once all is decided: their error, and the page about it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.findings import OPEN
from perflab.analysis.verdict import judge
from perflab.paths import project_root
from perflab.recordings import UntilDecided
from perflab.statistics import signed_rank
from perflab.statistics.comparison import effect_of
from tests.support.simulations.stopping import (
    KINDS,
    RULE,
    Place,
    by_rule,
    claim,
    errors,
    looks_of,
    lowest_sums,
    simulated,
)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_treatments_differ_in_one_of_twenty_runs_at_most_however_often_they_are_looked_at(
    kind: str,
) -> None:
    at_blocks, at_looks, of_rule = errors(np.random.default_rng(4), kind, 3000)
    # Three standard errors of so many runs.
    assert of_rule <= 0.05 + 3 * (0.05 * 0.95 / 3000) ** 0.5
    assert at_blocks > at_looks >= 0.07, "the usual test, looked at more often"


def test_decisions_that_are_computed_for_all_runs_at_once_are_those_of_each_run() -> None:
    logs = simulated(np.random.default_rng(5), 1.4, 0.08, 30)
    place = Place(logs)
    rules = [RULE, None]
    for rule in rules:
        lowest = {}
        for error in (0.05, 0.10):
            for n, lowest_sum in zip(looks_of(rule or RULE), _sums(rule, error), strict=True):
                lowest.setdefault(n, []).append(lowest_sum)
        for n, sums in lowest.items():
            expected = [
                judge(effect_of(pd.Series(x[:n]), rule=rule), claim()).outcome not in OPEN
                for x in logs
            ]
            assert place.decided(n, *sums).tolist() == expected


def _sums(rule: UntilDecided | None, error: float) -> list[int]:
    if rule is not None:
        return list(lowest_sums(rule, error))
    return [signed_rank.critical(n, error / 2)[0] + 1 for n in looks_of(RULE)]


def test_a_clear_effect_ends_a_run_early_and_a_doubtful_one_later() -> None:
    random = np.random.default_rng(6)
    clear = by_rule(Place(simulated(random, 1.6, 0.05, 40)), RULE)
    doubtful = by_rule(Place(simulated(random, 1.4, 0.08, 40)), RULE)
    assert clear.decided == 1
    assert clear.blocks < 9
    assert doubtful.blocks > clear.blocks + 2


def test_the_page_has_the_words_of_its_frame() -> None:
    page = (project_root() / "docs" / "stopping.md").read_text()
    frame = (project_root() / "benchmarks" / "stopping_table.md").read_text()
    for words in frame.split("\n\n"):
        assert "{" in words or words.strip() in page
