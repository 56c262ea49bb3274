"""Times of requests under which their service was paused: what the lab did is not the service's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perflab.load.checks.times import Number, times_of, window_table
from perflab.load.records.result import LoadResult
from tests.load.planted import BEGIN_NS, S, load_result

MS = S // 1_000
REQUESTS = 400
# One after the other, each of 10 ms.
DONE_S = 0.01 * np.arange(1, REQUESTS + 1)


def paused_under(tmp_path: Path, requests: int, pause_ms: int = 300) -> LoadResult:
    """Return a load of 10 ms a request, but for some of the last under which there was a pause."""
    # Each by itself, after all others: paused when 6 ms of it were over.
    planned_ns = BEGIN_NS + (10 + np.arange(requests, dtype=np.int64)) * S
    pauses = np.stack([planned_ns, planned_ns + pause_ms * MS], axis=1) + 6 * MS

    def change(rows: np.ndarray) -> None:
        rows["planned_ns"][-requests:] = planned_ns
        rows["done_ns"][-requests:] = pauses[:, 1] + 4 * MS

    return load_result(tmp_path, DONE_S, latency_s=0.01, change=change, pauses=pauses)


def numbers(result: LoadResult) -> dict[str, Number]:
    return times_of(result).numbers()


def test_a_number_that_pauses_could_move_is_given_as_a_bound(tmp_path: Path) -> None:
    found = numbers(paused_under(tmp_path, requests=8))
    # Of 400 requests eight waited for 300 ms: 6 ms of 16.
    assert found["mean"].at_least == pytest.approx(10)
    assert np.isnan(found["mean"].value)
    assert np.isnan(found["p99"].value)
    assert found["p99"].at_least == pytest.approx(10)
    # Their number can move no median, and what it is without them is what it is.
    assert found["p50"].value == pytest.approx(10)


def test_a_pause_that_moves_nothing_is_taken_out(tmp_path: Path) -> None:
    result = paused_under(tmp_path, requests=1, pause_ms=100)
    assert numbers(result)["mean"].value == pytest.approx(10)
    assert times_of(result).paused_share == pytest.approx(100 / (REQUESTS * 10))


def test_a_load_whose_service_was_never_paused_has_the_times_that_it_has(tmp_path: Path) -> None:
    found = numbers(load_result(tmp_path, DONE_S, latency_s=0.01))
    assert found["mean"].value == found["max"].value == pytest.approx(10)


def test_the_mean_of_a_window_leaves_pauses_out(tmp_path: Path) -> None:
    window = np.array([[BEGIN_NS - S, BEGIN_NS, BEGIN_NS + 10 * S]])
    pause = np.array([[BEGIN_NS + 2 * S, BEGIN_NS + 3 * S]])
    # Each takes 2 s: one is under way for the whole pause, two for half of it.
    done_s = np.array([2.5, 3.5, 4.0, 6.0])
    result = load_result(tmp_path, done_s, latency_s=2.0, windows=window, pauses=pause)
    (mean_ms,) = window_table(result)["mean_ms"]
    assert mean_ms == pytest.approx((1_500 + 1_000 + 1_000 + 2_000) / 4)
