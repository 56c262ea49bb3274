"""One definition of throughput: successes done in (begin, end], per second of that window."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.instruments.requests import request_columns
from perflab.load.checks.selfcheck import check
from perflab.load.records.result import LoadResult, completed, per_second
from perflab.load.report import summary
from perflab.load.workload import Burst, Request, Workload
from tests.load.planted import S, load_result

WORK = Workload(request=Request(), arrivals=Burst(size=1))


@given(st.lists(st.integers(0, 100)), st.lists(st.integers(0, 100), min_size=2, unique=True))
def test_windows_in_a_row_count_every_success_once(done: list[int], cuts: list[int]) -> None:
    edges, instants = sorted(cuts), np.array(done, dtype=np.int64)
    counted = completed(instants, np.array(list(pairwise(edges))))
    assert counted == completed(instants, np.array([[edges[0], edges[-1]]]))
    assert counted == sum(edges[0] < done_ns <= edges[-1] for done_ns in done)


def test_a_rate_is_per_second_and_a_window_without_length_has_none() -> None:
    assert per_second(30, 3 * S) == 10
    assert math.isnan(per_second(3, 0))


def shown_twice(result: LoadResult) -> tuple[float, float]:
    """Return the throughput in the summary of a load and in a trial's row."""
    told = summary(result, WORK, check(result, WORK))["throughput_rps"]
    return told, request_columns(result)["throughput_rps"]


def test_the_summary_of_a_load_and_a_trial_have_the_same_throughput(tmp_path: Path) -> None:
    # Requests are planned every 10 ms for 2 s and done 0.3 s later: 30 after the last plan.
    done_s = np.arange(201) / 100 + 0.3
    result = load_result(tmp_path, done_s, errors={"status": 20})
    told, kept = shown_twice(result)
    assert told == kept
    assert told == pytest.approx((201 - 30 - 20) / 2)


def test_a_throughput_without_most_answers_has_a_warning(tmp_path: Path) -> None:
    slow = load_result(tmp_path / "slow", np.arange(201) / 100 + 3, latency_s=3.0)
    quick = load_result(tmp_path / "quick", np.arange(201) / 100 + 3, latency_s=0.3)
    (told,) = [
        remark["text"]
        for remark in summary(slow, WORK, check(slow, WORK))["warnings"]
        if "throughput" in remark["text"]
    ]
    assert told.startswith("throughput leaves out 201 of 201 successes")
    assert "throughput" not in str(summary(quick, WORK, check(quick, WORK))["warnings"])
