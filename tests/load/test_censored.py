"""Requests that were cut off before their end move no number unseen."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from perflab.instruments.requests import request_columns, throughput_without, time_columns
from perflab.load.checks.selfcheck import SelfCheck, check
from perflab.load.checks.trend import response_trend
from perflab.load.clients.outcome import CODES
from perflab.load.records.result import LoadResult
from perflab.load.records.times import Number
from perflab.load.report import _held, summary
from perflab.load.summary import LoadSummary, TimesMs
from perflab.load.summary_table import _cell, table
from perflab.load.workload import ClosedLoop, Objective, Request, Workload
from perflab.statistics import CENSORED
from perflab.statistics.quantiles import bounds_of
from tests.load.planted import S, load_result

# The planted load: 6,000 requests of about 5 ms, of which 52 hang until a time-out of a second.
N, HANGING, TIMEOUT_MS = 6000, 52, 1000.0
USUAL_MS = 4 + np.random.default_rng(5).exponential(1.0, N)


def hanging(rows: np.ndarray, number: int = HANGING, kind: str = "timeout") -> None:
    spent_ms = USUAL_MS.copy()
    place = np.arange(number) * (N // max(1, number))
    spent_ms[place] = TIMEOUT_MS
    rows["error"][place] = CODES[kind]
    for name in ("planned_ns", "started_ns", "sent_ns"):
        rows[name] = rows["done_ns"] - (spent_ms * 1e6).astype("int64")


def hung(folder: Path, number: int = HANGING, kind: str = "timeout") -> LoadResult:
    return load_result(
        folder, 2 + np.arange(N) * 0.01, cpu_ns=S // 10,
        change=lambda rows: hanging(rows, number, kind),
    )  # fmt: skip


def workload(*objectives: Objective, requests: int = N) -> Workload:
    arrivals = ClosedLoop(users=5, requests=requests, pacing_s=0.1)
    return Workload(request=Request(), arrivals=arrivals, objectives=objectives)


def shown(result: LoadResult, *objectives: Objective) -> tuple[LoadSummary, SelfCheck]:
    work = workload(*objectives, requests=sum(map(len, result.rows)))
    judgement = check(result, work)
    return summary(result, work, judgement), judgement


@pytest.mark.promise
def test_a_few_failures_after_the_sending_hide_no_wait_for_a_connection(tmp_path: Path) -> None:
    def waited(rows: np.ndarray) -> None:
        rows["started_ns"] = rows["sent_ns"] - 20_000

    result = load_result(tmp_path, np.linspace(1, 9, 1000), errors={"status": 20}, change=waited)
    assert result.connection_waits.numbers((99,))["p99"].value == pytest.approx(0.02)


# The rule for single values.


@pytest.mark.promise
def test_a_percentile_below_the_rank_of_late_cut_off_requests_is_exact() -> None:
    known, cut = np.arange(1.0, 9901), np.full(100, 1e6)
    bounds = bounds_of(known, cut, (50, 95, 99.9))
    whole = np.concatenate([known, cut])
    assert bounds[50].value == bounds[50].high == np.percentile(whole, 50)
    assert bounds[95].value == np.percentile(whole, 95)
    assert (bounds[99.9].low, bounds[99.9].high) == (1e6, math.inf)
    assert math.isnan(bounds[99.9].value)
    assert bounds[99.9].at_least == 1e6


def test_requests_cut_off_early_may_move_a_percentile_by_at_most_a_twentieth() -> None:
    known = np.linspace(100, 200, 1000)
    few, many = (bounds_of(known, np.full(number, 1.0), (50,))[50] for number in (60, 100))
    assert few.low < np.median(known) < few.high
    assert few.value == few.low
    assert math.isnan(many.value)
    assert many.at_least < np.median(known)


# The printed numbers.


@pytest.mark.promise
def test_52_of_6000_requests_that_hang_leave_no_mean_and_no_p99_point_9(tmp_path: Path) -> None:
    numbers, judged = shown(hung(tmp_path))
    assert judged.valid
    assert judged.censored == HANGING
    assert shown(hung(tmp_path / "ended", kind="status"))[1].censored == 0
    times, at_least = numbers.response_time.ms, numbers.response_time.at_least_ms
    assert (times["mean"], times["p99.9"], times["max"]) == (None, None, None)
    assert at_least == pytest.approx({"p99.9": 1000, "max": 1000, "mean": 13.6}, rel=0.01)
    # 99% of all are not 99% of those that ended.
    whole = USUAL_MS.copy()
    whole[np.arange(HANGING) * (N // HANGING)] = TIMEOUT_MS
    assert times["p99"] == pytest.approx(np.percentile(whole, 99), rel=1e-6)
    assert times["p99"] > np.percentile(USUAL_MS, 99) * 1.1
    (remark,) = [remark for remark in judged.warnings if remark.code == "load.censored"]
    assert remark.text.startswith("52 requests were cut off before their end")
    assert "mean >= 13.6" in remark.text
    line = next(line for line in table(numbers).splitlines() if line.startswith("response time "))
    assert line.count(">=1000") == 2


@pytest.mark.parametrize("kind", CENSORED)
def test_a_trials_row_has_no_number_that_cut_off_requests_could_move(
    tmp_path: Path, kind: str
) -> None:
    row, whole = request_columns(hung(tmp_path / "a", 59, kind)), hung(tmp_path / "b", 0)
    assert math.isnan(row["mean_ms"])
    assert math.isnan(row["service_mean_ms"])
    assert row["p50_ms"] == pytest.approx(np.median(USUAL_MS), rel=0.02)
    assert request_columns(whole)["mean_ms"] == pytest.approx(USUAL_MS.mean(), rel=1e-3)


def test_an_objective_on_a_bound_can_be_missed_and_not_held(tmp_path: Path) -> None:
    strict, loose = (Objective(percentile=99.9, below_ms=ms) for ms in (500, 2000))
    numbers, _ = shown(hung(tmp_path), strict, loose)
    assert [objective.held for objective in numbers.objectives] == [False, None]
    assert "cut off before their end" in numbers.objectives[1].why


# Services that are faster than the client can measure.


def late_by(late_ms: float) -> tuple[np.ndarray, np.ndarray]:
    woken_s = np.arange(0.4, 5.3, 0.005)
    return woken_s, np.full(len(woken_s), late_ms)


@pytest.mark.parametrize(("service_s", "vouched"), [(0.0011, True), (0.0009, False)])
def test_a_time_of_which_a_tenth_is_the_clients_is_marked(
    tmp_path: Path, service_s: float, vouched: bool
) -> None:
    result = load_result(
        tmp_path, np.linspace(0.4, 5.3, 500), latency_s=service_s, cpu_ns=S // 10,
        delays=late_by(0.1),
    )  # fmt: skip
    numbers, judged = shown(result)
    assert judged.valid
    row = request_columns(result)
    for name in ("p50_ms", "p99_ms", "mean_ms"):
        assert row[name] == pytest.approx(1000 * service_s, rel=0.02)
    assert row["throughput_rps"] == pytest.approx(100, rel=0.02)
    assert row["p50_client_ms"] == pytest.approx(0.1)
    codes = {remark.code for remark in judged.warnings}
    assert ("generator.client_time" in codes) != vouched
    assert ("0.900~" in table(numbers)) != vouched


def test_a_time_that_could_be_a_little_longer_has_its_upper_end() -> None:
    columns = time_columns({"p50_ms": Number(10.0, 10.3), "p90_ms": Number(9.0, 9.0)})
    assert (columns["p50_ms"], columns["p50_at_most_ms"]) == (10.0, 10.3)
    assert "p90_at_most_ms" not in columns


def test_the_clients_own_time_does_not_miss_an_objective(tmp_path: Path) -> None:
    result = load_result(
        tmp_path, np.linspace(0.4, 5.3, 500), latency_s=0.001, cpu_ns=S // 10, delays=late_by(0.15)
    )
    limits = (1.1, 0.9, 0.8)
    numbers, _ = shown(result, *(Objective(percentile=90, below_ms=limit) for limit in limits))
    assert [objective.held for objective in numbers.objectives] == [True, None, False]
    assert numbers.objectives[1].why == "up to 0.15 ms of 1 ms are the client's own"


# Loads with a trend of response times.


def test_a_crowd_that_leaves_at_the_end_is_no_trend(tmp_path: Path) -> None:
    """The last requests of 100 users get ever faster; the 100 before them are level."""
    spent_ms = np.concatenate([np.full(100, 100.0), np.linspace(100, 20, 100)])

    def leave(rows: np.ndarray) -> None:
        rows["user"] = np.arange(len(rows)) % 100
        for name in ("planned_ns", "started_ns", "sent_ns"):
            rows[name] = rows["done_ns"] - (spent_ms * 1e6).astype("int64")

    result = load_result(tmp_path, np.linspace(0.4, 5.3, 200), change=leave, cpu_ns=S // 10)
    assert not response_trend(result).too_large
    assert abs(response_trend(result).log) < 0.01


@pytest.mark.promise
def test_where_no_answer_came_the_time_out_is_the_bound() -> None:
    columns = time_columns({"mean_ms": Number(300_000.0, math.inf, math.nan)})
    assert columns["mean_at_least_ms"] == 300_000.0
    part = time_columns({"mean_ms": Number(300_000.0, math.inf, 200.0)})
    assert part["mean_at_least_ms"] == 299_800.0


def test_a_bound_without_any_known_part_of_the_client_can_miss_an_objective() -> None:
    number = Number(30_000.0, math.inf, math.nan)
    assert number.at_least == number.without_client == 30_000
    assert _held(number, 100.0) is False
    assert _held(Number(110.0, math.inf, 20.0), 100.0) is None


@pytest.mark.promise
def test_a_time_out_takes_no_part_of_the_client_out_of_the_throughput() -> None:
    known = {"throughput_rps": 100.0, "mean_client_ms": 3.0}
    whole = throughput_without({**known, "mean_ms": 10.0})
    cut = throughput_without({**known, "mean_ms": math.nan, "mean_at_least_ms": 7.0})
    assert cut == whole == {"throughput_client_rps": pytest.approx(100 - 100 * 10 / 7)}


def test_a_bound_is_printed_rounded_down() -> None:
    times = TimesMs(ms={"p99": None, "max": None}, at_least_ms={"p99": 100.6, "max": 9.96})
    assert [_cell(times, name).strip() for name in ("p99", "max")] == [
        ">=100", ">=9.9",
    ]  # fmt: skip
