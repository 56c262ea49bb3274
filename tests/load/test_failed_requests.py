"""Requests that failed would have taken any time up to the time-out, and numbers allow for it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from perflab.errors import PerflabError
from perflab.load.clients.exchange import Prepared
from perflab.load.clients.outcome import CODES
from perflab.load.clients.targets import split
from perflab.load.options import LoadOptions
from perflab.load.workload import Request
from tests.support.simulations.failing import TIMEOUT_S, closed_loop, columns_of

USUAL_MS, SHARE = 2.0, 0.03


def columns(folder: Path, share: float = SHARE, failure_ms: float = 0.1) -> dict[str, float]:
    return columns_of(closed_loop(folder, np.random.default_rng(4), share, failure_ms, USUAL_MS))


def test_a_mean_with_failures_lies_between_no_time_and_the_time_out_for_each(
    tmp_path: Path,
) -> None:
    row = columns(tmp_path)
    assert row["mean_ms"] == pytest.approx(USUAL_MS, rel=0.01)
    assert row["mean_ms_lower_end"] == pytest.approx((1 - SHARE) * USUAL_MS, rel=0.01)
    most = (1 - SHARE) * USUAL_MS + SHARE * TIMEOUT_S * 1000
    assert row["mean_at_most_ms"] == pytest.approx(most, rel=0.01)


def test_a_percentile_below_the_share_of_failures_has_ends_and_one_beyond_it_is_a_bound(
    tmp_path: Path,
) -> None:
    row = columns(tmp_path)
    assert row["p50_ms_lower_end"] < row["p50_ms"] < row["p50_at_most_ms"] < 1.02 * row["p50_ms"]
    assert math.isnan(row["p99_ms"])
    # The slowest 1% of all may be failures: what is left of them are 96% of the others.
    assert row["p99_at_least_ms"] == pytest.approx(USUAL_MS * math.exp(0.05 * 1.88), rel=0.02)
    assert "p50_at_least_ms" not in row


def test_without_failures_no_time_has_other_ends(tmp_path: Path) -> None:
    row = columns(tmp_path, share=0.0)
    assert not [name for name in row if "at_most" in name or "lower_end" in name]


@pytest.mark.parametrize("failure_ms", [0.1, 200.0])
def test_the_ends_of_throughput_hold_it_as_if_what_failed_had_been_answered(
    tmp_path: Path, failure_ms: float
) -> None:
    row = columns(tmp_path, failure_ms=failure_ms)
    whole = columns(tmp_path / "whole", share=0.0)["throughput_rps"]
    low, high = row["throughput_rps_lower_end"], row["throughput_rps_at_most"]
    assert low <= row["throughput_rps"] <= high
    # The users of the planted load end at different times, which moves its rate by up to a tenth.
    assert low < whole < 1.15 * high


@pytest.mark.promise
def test_users_with_a_pace_lose_no_more_by_a_failure_than_what_exceeds_the_pace(
    tmp_path: Path,
) -> None:
    result = closed_loop(tmp_path, np.random.default_rng(4), SHARE, 0.1, USUAL_MS)
    row = columns_of(result, pacing_s=0.05)
    rate = row["throughput_rps"]
    cycle_s = (1 - SHARE) * 0.05 + SHARE * TIMEOUT_S
    assert row["throughput_rps_lower_end"] == pytest.approx(rate * 0.05 / (1 - SHARE) / cycle_s)
    assert row["throughput_rps_at_most"] == pytest.approx(rate / (1 - SHARE))


@pytest.mark.parametrize("given", ["201,409", " 201, 409", [201, 409], (201, 409)])
def test_several_statuses_are_expected_and_all_others_fail(given: object) -> None:
    request = Request.model_validate({"expect_status": given})
    prepared = Prepared(request, split("http://127.0.0.1:1/")[0])
    assert [prepared.judge(status, None) for status in (201, 409, 200)] == [0, 0, CODES["status"]]
    assert Request.model_validate(request.model_dump(mode="json")) == request
    options = LoadOptions.model_validate({"url": "http://127.0.0.1/", "expect_status": given})
    assert options.words("/")["request"]["expect_status"] == (201, 409)


@pytest.mark.parametrize("given", ["201,", "", "abc", [201, "x"], 1000, -1, []])
def test_what_is_no_status_is_refused_in_one_sentence(given: object) -> None:
    with pytest.raises(ValueError, match="a status is a number, like 200; several are 201,409"):
        Request.model_validate({"expect_status": given})


@pytest.mark.parametrize("given", ["7", "200,0", 600])
def test_a_load_cannot_expect_a_status_that_no_answer_has(given: object) -> None:
    with pytest.raises(PerflabError, match="from 100 to 599"):
        LoadOptions.of({"url": "http://127.0.0.1/", "expect_status": given})
