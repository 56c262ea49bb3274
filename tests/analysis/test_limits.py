"""Claims with a limit: an effect, a level or a share is held against it, not against no effect."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from perflab.analysis.evaluation import evaluate
from perflab.analysis.results import AgainstStudy
from perflab.analysis.verdict import against_limit, judge
from perflab.recordings import Contrast, ContrastPair
from perflab.statistics.comparison import effect_of
from tests.support.planted_trial import Planted
from tests.support.synthetic import write_run

ON, OFF = {"commit": "on"}, {"commit": "off"}
LEVEL: dict[str, Any] = {
    "name": "a level", "claim": "most succeed", "response": "success_share", "scale": "level",
    "numerator": ON, "denominator": {}, "published_direction": "greater", "limit": 0.5,
    "source": "a study",
}  # fmt: skip
SHARE = LEVEL | {"scale": "share", "denominator": OFF, "response": "mean_ms"}
SIZED = Contrast.model_validate(SHARE | {"published_difference": 0.53})


def around(middle: float, half_width: float, n: int = 8) -> pd.Series:
    return pd.Series(middle + half_width * np.linspace(-1, 1, n))


@pytest.mark.parametrize(
    ("by_block", "result"),
    [
        (around(0.53, 0.02), AgainstStudy.AS_PUBLISHED),
        (around(0.53, 0.10), AgainstStudy.NOT_DECIDED),
        (around(0.65, 0.09), AgainstStudy.IN_DIRECTION),
        (around(0.80, 0.02), AgainstStudy.MORE),
        (around(0.20, 0.02), AgainstStudy.OTHER_WAY),
    ],
)
@pytest.mark.promise
def test_a_size_beside_a_limit_is_judged_by_both(by_block: pd.Series, result: AgainstStudy) -> None:
    assert judge(effect_of(by_block, "share"), SIZED).result is result


@pytest.mark.parametrize(
    ("middle", "result"),
    [(0.6, AgainstStudy.IN_DIRECTION), (0.5, AgainstStudy.NOT_DECIDED)],
)
@pytest.mark.promise
def test_a_level_is_compared_with_its_limit_and_not_with_zero(
    middle: float, result: AgainstStudy
) -> None:
    contrast = Contrast.model_validate(LEVEL)
    effect = against_limit(effect_of(around(middle, 0.02), "level"), contrast)
    assert judge(effect, contrast).result is result
    # The p-value is that of the limit, by the test that the interval inverts.
    assert (effect.p_value <= 0.05) is (result is AgainstStudy.IN_DIRECTION)


@pytest.mark.parametrize(("scale", "denominator"), [("difference", OFF), ("level", {})])
@pytest.mark.promise
def test_zeros_are_judged(scale: str, denominator: dict[str, str], tmp_path: Path) -> None:
    changes = {
        "scale": scale, "denominator": denominator, "response": "wait_us", "limit": 1.0,
        "published_direction": "smaller",
    }  # fmt: skip
    contrast = Contrast.model_validate(LEVEL | changes)
    treatments = (Planted(ON, 1.0), Planted(OFF, 1.6))
    run = write_run(tmp_path, treatments=treatments, requests=40, blocks=8, contrasts=[contrast])
    trials = run.trials().assign(wait_us=0.0)
    run.trials = lambda: trials  # type: ignore[method-assign]
    (finding,) = evaluate(run)
    assert finding.verdict.result is AgainstStudy.IN_DIRECTION
    assert finding.effect is not None
    assert (finding.effect.low, finding.effect.high) == (0.0, 0.0)
    assert (finding.valid, finding.trials) == ((8, 8) if scale == "level" else (16, 16))


def test_a_share_is_of_the_numerator_or_of_another_difference(tmp_path: Path) -> None:
    treatments = [Planted(ON, 1.0), Planted(OFF, 2.0), Planted({"commit": "none"}, 4.0)]
    pair = ContrastPair(numerator=ON, denominator={"commit": "none"})
    contrasts = [
        Contrast.model_validate(SHARE),
        Contrast.model_validate(SHARE | {"name": "of a difference", "interaction": pair}),
    ]
    run = write_run(
        tmp_path, treatments=treatments, requests=200, blocks=8, noise=0.005, contrasts=contrasts
    )
    estimates = [finding.effect.estimate for finding in evaluate(run) if finding.effect]
    assert estimates == pytest.approx([1 / 2, (1 - 1 / 2) / (1 - 1 / 4)], abs=0.03)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"denominator": OFF}, "a level has no denominator"),
        ({"limit": None}, "a level needs a limit"),
        ({"published_direction": "none"}, "a limit needs a published_direction"),
        ({"published_difference": 0.4}, "is not 'greater' than 0.5"),
        ({"scale": "ratio", "denominator": OFF, "limit": -1.0}, "the limit of a ratio is above 0"),
        ({"limit": math.inf}, "finite"),
    ],
)
def test_a_limit_that_contradicts_its_claim_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Contrast.model_validate(LEVEL | changes)
