"""How often each verdict is given for a known truth, and the page about it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from perflab.analysis.decision import PEEKING
from perflab.analysis.verdict import Outcome
from perflab.paths import project_root
from tests.support.simulations import verdicts


def counts(truth: float, noise: float, blocks: int) -> dict[str, Counter[Outcome]]:
    return verdicts.verdicts(np.random.default_rng(1), 150, blocks, truth, noise)


def test_another_size_is_seldom_called_reproduced() -> None:
    outcomes = counts(1.3, 0.08, 6)["1.6"]
    # An earlier rule gave 53%.
    assert outcomes[Outcome.REPRODUCED] / 150 <= 0.15
    assert outcomes[Outcome.SIZE_UNDECIDED] / 150 >= 0.75


def test_the_published_size_is_mostly_called_reproduced() -> None:
    assert counts(1.6, 0.05, 8)["1.6"][Outcome.REPRODUCED] / 150 >= 0.95
    assert counts(1.0, 0.05, 12)["no effect"][Outcome.REPRODUCED] / 150 >= 0.95


def test_no_effect_reproduces_no_published_one() -> None:
    outcomes = counts(1.0, 0.05, 8)
    assert outcomes["1.6"][Outcome.NOT_REPRODUCED] / 150 >= 0.9
    # Only a false alarm of the direction, one in forty, can look like 1.1.
    assert outcomes["1.1"][Outcome.REPRODUCED] / 150 <= 0.06


@pytest.mark.parametrize(("claims", "true"), [(1, 0), (5, 1), (15, 0)])
def test_of_the_directions_shown_at_most_one_in_twenty_is_false(claims: int, true: int) -> None:
    level = verdicts.family_level(np.random.default_rng(2), 1200 // (claims + 5), 8, claims, true)
    # Three standard errors of so few runs above 0.05.
    assert level.false_share <= 0.05 + 3 * (0.05 / (1200 // (claims + 5))) ** 0.5


def test_looking_after_every_block_raises_false_alarms_as_the_page_says() -> None:
    once, ever = verdicts.false_alarms_of_peeking(np.random.default_rng(3), 4000)
    assert once == pytest.approx(0.05, abs=0.012)
    assert ever == pytest.approx(PEEKING, abs=0.025)


def test_the_page_has_the_words_of_its_frame() -> None:
    page = (project_root() / "docs" / "verdicts.md").read_text()
    frame = (project_root() / "benchmarks" / "verdict_table.md").read_text()
    for words in frame.split("\n\n"):
        assert "{" in words or words.strip() in page
