"""The three targets: how many trials met each, of deliveries or of published pings."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from perflab.recordings import Run
from perflab.systems.chat.ladder import TARGETS_MET, targets_met
from tests.figures.shown import all_words, cut_off, overlapping, picture
from tests.support.synthetic import BUSY
from tests.systems.chat.synthetic_streams import write_ladder

REFUSED: dict[str, object] = {"state": "invalid", "reasons": [BUSY]}
PINGS: dict[str, object] = {
    "all_ping_p90_ms": 300.0, "all_ping_p95_ms": 400.0, "all_ping_p99_ms": math.nan,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of a rung, and of one at the published load with too few pings for a p99."""
    late = {"delivery_p90_ms": 231.0}
    return write_ladder(
        tmp_path_factory.mktemp("targets"),
        {("json", 250): [{}, {}, late, REFUSED], ("json_login", 250): [PINGS] * 3},
        {
            ("json", 250): {"scenario": ""},
            ("json_login", 250): {"scenario": "JSON, with login"},
        },
    )


def row(run: Run, name: str, percentile: str) -> pd.Series:
    table = targets_met(run)
    rows = table[(table["treatment"] == f"rung={name}") & (table["percentile"] == percentile)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_a_refused_trial_is_in_the_denominator(run: Run) -> None:
    p90 = row(run, "json_250", "p90")
    assert (p90["of"], p90["met"], p90["trials"]) == ("deliveries", 2, 4)
    assert (p90["low"], p90["high"]) == pytest.approx((0.068, 0.932), abs=0.001)
    assert row(run, "json_250", "p95")["met"] == 3


def test_a_rung_at_the_published_load_is_judged_by_its_pings(run: Run) -> None:
    p90 = row(run, "json_login_250", "p90")
    assert (p90["of"], p90["met"], p90["trials"]) == ("pings", 0, 3)
    assert (p90["published_ms"], p90["load"]) == (342, "as published")
    # Deliveries of these trials are within every target.
    assert row(run, "json_login_250", "p95")["met"] == 3


def test_too_few_pings_for_a_percentile_are_stated_and_not_counted_as_met(run: Run) -> None:
    p99 = row(run, "json_login_250", "p99")
    assert (p99["met"], p99["unknown"], p99["trials"]) == (0, 3, 3)
    figure = picture(TARGETS_MET, run)
    words = all_words(figure)
    assert "n too small" in words
    assert "2 of 4" in words
    assert cut_off(figure) == []
    assert overlapping(figure) == []
