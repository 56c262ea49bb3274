"""What is known of a load while it runs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from perflab.load.columns import latency_counts
from perflab.load.stopping import Progress, percentile_ms


def test_percentiles_of_the_live_histogram_are_within_a_hundredth() -> None:
    values = np.random.default_rng(1).lognormal(15, 1, 100_000).astype(np.int64)
    counts = latency_counts(values)
    for share in (50, 90, 99, 99.9):
        exact = float(np.percentile(values, share)) / 1e6
        assert percentile_ms(counts, share) == pytest.approx(exact, rel=0.01)
    assert np.isnan(percentile_ms({}, 50))


def test_progress_adds_up_over_workers() -> None:
    parts = [Progress(1, 2, 3, 4, Counter({1: 1})), Progress(10, 20, 30, 40, Counter({1: 2, 5: 1}))]
    assert Progress.total(parts) == Progress(11, 22, 33, 44, Counter({1: 3, 5: 1}))
