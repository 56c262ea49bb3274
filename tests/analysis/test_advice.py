"""What is said of an undecided comparison: the number of blocks, or what else would tell more."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.decision import decide, of_busy_machine
from perflab.analysis.doubts.bound_causes import PAUSES, TIME_OUT, UNKNOWN, way_out_of_bound
from perflab.analysis.results import Compared
from perflab.recordings import Contrast
from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import effect_of, effect_within
from perflab.statistics.in_words import as_share
from tests.support.synthetic import ON_AND_OFF, contrast_of, write_run


@pytest.mark.parametrize("blocks", [3, 6, 8, 10])
def test_a_fresh_run_has_always_more_blocks_than_those_that_did_not_decide(blocks: int) -> None:
    random = np.random.default_rng(blocks)
    decisions = [
        decide(effect_of(pd.Series(0.05 + 0.05 * random.standard_normal(blocks))))
        for _ in range(10)
    ]
    undecided = [decision for decision in decisions if decision.result is Compared.NOT_DECIDED]
    assert undecided
    assert all(decision.blocks[1] > blocks for decision in undecided)


def test_no_number_of_blocks_is_named_where_these_agree_and_each_may_be_off() -> None:
    logs = pd.Series(np.linspace(0.049, 0.051, 10))
    decision = decide(effect_within(Ends(logs - 0.2, logs + 0.2, logs)))
    assert (decision.result, decision.blocks[1]) == (Compared.NOT_DECIDED, -1)
    assert "what the client or pauses may have added" in decision.text


def test_the_noise_of_a_busy_machine_names_no_number_of_blocks() -> None:
    logs = pd.Series([-0.2, 0.3, 0.1, -0.1, 0.25, 0.2])
    decision = decide(effect_of(logs))
    assert decision.blocks[1] > 6
    assert "quiet machine" in of_busy_machine(decision).text
    assert of_busy_machine(decision).blocks == (-1, -1)
    shown = decide(effect_of(pd.Series(np.linspace(0.5, 0.6, 8))))
    assert of_busy_machine(shown) == shown


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"mean_at_least_ms": 9.0, "censored": 3}, TIME_OUT),
        ({"mean_at_least_ms": 9.0, "censored": 0}, PAUSES),
        ({"mean_at_least_ms": math.nan, "censored": 0}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_a_longer_time_out_is_advised_only_where_requests_were_cut_off(
    columns: dict[str, float], words: str, tmp_path: Path
) -> None:
    run = write_run(tmp_path, blocks=2, requests=20)
    contrast: Contrast = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], response="mean_ms")
    assert way_out_of_bound(run, contrast, run.trials().assign(**columns)) == words


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"), (0.004, "0.4%"), (0.00042, "0.04%"), (0.04, "4%"), (0.996, "99.6%"),
        (0.99996, "99.996%"), (1, "100%"), (1.2, "120%"), (math.nan, "nan%"),
    ],
)  # fmt: skip
def test_only_nothing_is_0_and_only_all_is_100_percent(share: float, text: str) -> None:
    assert as_share(share) == text
