"""Times of requests during which the lab paused their service: the pause is not the service's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perflab.load.checks.times import Number, times_of, window_table
from perflab.load.records.result import LoadResult
from tests.load.planted import BEGIN_NS, S, load_result

MS = S // 1_000
REQUESTS = 400
# The ends of requests of 10 ms, one after the other.
DONE_S = 0.01 * np.arange(1, REQUESTS + 1)


def paused_under(tmp_path: Path, requests: int, pause_ms: int = 300) -> LoadResult:
    """Return a load of 10 ms requests; the service was paused during some of the last."""
    # Each of these runs alone, after all others, and is paused after 6 ms.
    planned_ns = BEGIN_NS + (10 + np.arange(requests, dtype=np.int64)) * S
    pauses = np.stack([planned_ns, planned_ns + pause_ms * MS], axis=1) + 6 * MS

    def change(rows: np.ndarray) -> None:
        rows["planned_ns"][-requests:] = planned_ns
        rows["done_ns"][-requests:] = pauses[:, 1] + 4 * MS

    return load_result(tmp_path, DONE_S, latency_s=0.01, change=change, pauses=pauses)


def numbers(result: LoadResult) -> dict[str, Number]:
    return times_of(result).numbers()


def test_a_number_that_pauses_could_move_is_a_bound(tmp_path: Path) -> None:
    by_name = numbers(paused_under(tmp_path, requests=8))
    # Of 400 requests eight waited for 300 ms: 6 ms of 16.
    assert by_name["mean"].at_least == pytest.approx(10)
    assert np.isnan(by_name["mean"].value)
    assert np.isnan(by_name["p99"].value)
    assert by_name["p99"].at_least == pytest.approx(10)
    # So few pauses cannot move the median.
    assert by_name["p50"].value == pytest.approx(10)


def test_a_pause_that_moves_nothing_is_taken_out(tmp_path: Path) -> None:
    result = paused_under(tmp_path, requests=1, pause_ms=100)
    assert numbers(result)["mean"].value == pytest.approx(10)
    assert times_of(result).paused_share == pytest.approx(100 / (REQUESTS * 10))


def test_the_mean_of_a_window_leaves_pauses_out(tmp_path: Path) -> None:
    window = np.array([[BEGIN_NS - S, BEGIN_NS, BEGIN_NS + 10 * S]])
    pause = np.array([[BEGIN_NS + 2 * S, BEGIN_NS + 3 * S]])
    # Each request takes 2 s: one is under way for the whole pause, two for half of it.
    done_s = np.array([2.5, 3.5, 4.0, 6.0])
    result = load_result(tmp_path, done_s, latency_s=2.0, windows=window, pauses=pause)
    (mean_ms,) = window_table(result)["mean_ms"]
    assert mean_ms == pytest.approx((1_500 + 1_000 + 1_000 + 2_000) / 4)
