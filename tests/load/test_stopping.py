"""What is known of a load while it runs."""

from __future__ import annotations

import numpy as np
import pytest

from perflab.load.columns import latency_counts
from perflab.load.stopping import percentile_ms


def test_percentiles_of_the_live_histogram_are_within_a_hundredth() -> None:
    values = np.random.default_rng(1).lognormal(15, 1, 100_000).astype(np.int64)
    counts = latency_counts(values)
    for share in (50, 90, 99, 99.9):
        exact = float(np.percentile(values, share)) / 1e6
        assert percentile_ms(counts, share) == pytest.approx(exact, rel=0.01)
    assert np.isnan(percentile_ms({}, 50))
