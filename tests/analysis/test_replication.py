"""The prediction of a single A-then-B run comes true as often as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perflab.analysis.evaluation import single_run
from tests.support.synthetic import ON_AND_OFF, contrast_of

CLAIM = contrast_of(*ON_AND_OFF[::-1], published_ratio=1.2, published_direction="greater")


def test_predictions_are_calibrated() -> None:
    """The predicted probability of a further value is uniform, even with 5 blocks."""
    random = np.random.default_rng(7)
    logs = 0.15 * random.standard_normal((2000, 6))
    signs = [single_run(blocks[:5] - blocks[5], CLAIM).sign for blocks in logs]
    assert np.quantile(signs, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.03)


def test_it_says_sign_and_size_where_they_were_published() -> None:
    x = [0.1, 0.2, 0.15, 0.25, 0.12, 0.2]
    both = single_run(x, CLAIM)
    assert both.text() == f"sign {both.sign:.0%}, size {both.size:.0%}"
    no_effect = contrast_of(*ON_AND_OFF, published_ratio=None, published_direction="none")
    none = single_run(x, no_effect)
    assert (math.isnan(none.sign), none.text()) == (True, f"size {none.size:.0%}")
    down = contrast_of(*ON_AND_OFF, published_ratio=None, published_direction="smaller")
    assert single_run(x, down).text() == f"sign {1 - both.sign:.0%}"
    unpublished = contrast_of(*ON_AND_OFF, published_ratio=None, published_direction=None)
    assert single_run(x, unpublished).text() == ""
    assert single_run(x[:2], CLAIM) is None
