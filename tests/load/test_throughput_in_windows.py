"""Throughput: successes done in (begin, end], per second; in windows, that of known loops.

The loops are simulated by events: who plans what when has an answer known beforehand.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.instruments.requests import request_columns
from perflab.load.checks.selfcheck import check
from perflab.load.clients.outcome import MEASURE, WARMUP
from perflab.load.records.result import LoadResult, completed, per_second
from perflab.load.report import summary
from perflab.load.workload import Burst, Request, Workload
from perflab.load.workload.windows import BEGIN, COUNTED, END, Cycles, window_of
from perflab.recordings.responses import lower_end_column
from perflab.trials.choosing import Pace, needed_slice_ms
from tests.load.planted import BEGIN_NS, MS, S, load_result

Draw = Callable[[], float]


@dataclass(frozen=True)
class Server:
    """A service that lets each request wait (ms), and then computes for it, one at a time (ms)."""

    wait_ms: Draw
    work_ms: Draw = lambda: 0.0


def cut(slice_ms: float, count: int) -> np.ndarray:
    """Return the windows of one of two treatments that take turns, ns: begin, counted, end."""
    gap_ms = max(10.0, slice_ms / 5)
    begin = gap_ms + np.arange(count) * 2 * (slice_ms + gap_ms)
    windows = np.stack([begin, begin + slice_ms / 5, begin + slice_ms], axis=1)
    windows_ns: np.ndarray = BEGIN_NS + np.rint(windows * MS).astype(np.int64)
    return windows_ns


def requests(
    server: Server, users: int, windows: np.ndarray, think_ms: float = 0.0, pacing_ms: float = 0.0
) -> Iterator[tuple[int, int]]:
    """Yield when each request was planned and done, in ns; users plan in windows alone."""
    events = [(int(windows[0, BEGIN]), user) for user in range(users)]
    heapq.heapify(events)
    waiting: list[tuple[int, int, int]] = []
    free_ns = 0
    while events or waiting:
        if events and (not waiting or events[0][0] <= waiting[0][0]):
            planned_ns, user = heapq.heappop(events)
            heapq.heappush(waiting, (planned_ns + round(server.wait_ms() * MS), user, planned_ns))
            continue
        ready_ns, user, planned_ns = heapq.heappop(waiting)
        done_ns = free_ns = max(free_ns, ready_ns) + round(server.work_ms() * MS)
        yield planned_ns, done_ns
        next_ns = max(done_ns + round(think_ms * MS), planned_ns + round(pacing_ms * MS))
        opening_ns = _opening_ns(windows, next_ns)
        if opening_ns is not None:
            heapq.heappush(events, (opening_ns, user))


def _opening_ns(windows: np.ndarray, at_ns: int) -> int | None:
    if window_of(np.array([at_ns]), windows)[0] >= 0:
        return at_ns
    later = windows[windows[:, BEGIN] >= at_ns, BEGIN]
    return int(later[0]) if len(later) else None


def load(
    folder: Path,
    server: Server,
    users: int,
    windows: np.ndarray,
    think_ms: float = 0.0,
    pacing_ms: float = 0.0,
) -> LoadResult:
    """Return what such a loop would have left on disk."""
    instants = np.array(list(requests(server, users, windows, think_ms, pacing_ms)))

    def planted(rows: np.ndarray) -> None:
        rows["planned_ns"] = rows["started_ns"] = rows["sent_ns"] = instants[:, 0]
        rows["done_ns"] = rows["first_byte_ns"] = instants[:, 1]
        settled = instants[:, 0] >= windows[window_of(instants[:, 0], windows), COUNTED]
        rows["stage"] = np.where(settled, MEASURE, WARMUP)

    cycles = Cycles(users, round(think_ms * MS), round(pacing_ms * MS))
    return load_result(
        folder, np.zeros(len(instants)), change=planted, windows=windows, cycles=cycles
    )


def sleeping(time_ms: float) -> Server:
    """Return a service that only waits."""
    return Server(lambda: time_ms)


def slices(p95_ms: float, count: int, cycle_ms: float = 0.0) -> np.ndarray:
    """Return windows of the length that the lab chooses for such responses."""
    pace = Pace(p95_ms, max(0.0, cycle_ms - p95_ms))
    return cut(needed_slice_ms([pace], "process"), count)


@pytest.mark.parametrize(("work_ms", "error"), [(0.0, 1e-3), (0.3, 5e-3)])
@pytest.mark.parametrize(("time_ms", "users"), [(4.5, 1), (7.0, 12)])
def test_throughput_of_a_service_that_waits_and_computes_is_right_to_half_a_percent(
    tmp_path: Path, time_ms: float, users: int, work_ms: float, error: float
) -> None:
    # All users compute for less time than one waits: after the first round none meets another.
    server = Server(lambda: time_ms - work_ms, lambda: work_ms)
    result = load(tmp_path, server, users, slices(time_ms + users * work_ms, 30))
    assert result.throughput_rps == pytest.approx(users / time_ms * 1e3, rel=error)
    mean_ms = result.response_times.numbers()["mean"].value
    # Little's law, as over whole trials.
    assert result.throughput_rps * mean_ms / users / 1e3 == pytest.approx(1, abs=1e-3)


def test_what_goes_on_in_pauses_is_in_the_ends_of_throughput(tmp_path: Path) -> None:
    time_ms, windows = 7.0, slices(7.0, 30)
    result = load(tmp_path, sleeping(time_ms), 4, windows)
    assert lower_end_column("throughput_rps") not in request_columns(result)
    pauses = np.stack([windows[:-1, END] + MS, windows[1:, BEGIN]], axis=1)
    columns = request_columns(replace(result, pauses=pauses))
    # A timer goes on while its process is paused.
    least, most = columns[lower_end_column("throughput_rps")], columns["throughput_rps"]
    assert least == pytest.approx(4 / time_ms * 1e3, rel=1e-3)
    assert most > 1.001 * least


@pytest.mark.parametrize(("users", "shape"), [(4, 1), (16, 12)])
def test_throughput_of_random_times_is_users_over_their_mean(
    tmp_path: Path, users: int, shape: int
) -> None:
    chance, time_ms = random.Random(users), 6.0
    server = Server(lambda: chance.gammavariate(shape, time_ms / shape))
    p95_ms = time_ms * (3.0 if shape == 1 else 1.55)
    windows = slices(p95_ms, 1_600 // users)
    result = load(tmp_path, server, users, windows)
    # Of n requests the mean is known to a standard error of 1 / sqrt(shape * n).
    error = 1 / math.sqrt(shape * result.requests_counted)
    assert result.throughput_rps == pytest.approx(users / time_ms * 1e3, rel=3 * error + 5e-3)


@pytest.mark.parametrize(
    ("think_ms", "pacing_ms", "cycle_ms"), [(3.0, 0.0, 9.0), (0.0, 9.5, 9.5), (0.0, 4.0, 6.0)]
)
def test_users_who_think_or_keep_a_pace_are_free_again_after_it(
    tmp_path: Path, think_ms: float, pacing_ms: float, cycle_ms: float
) -> None:
    windows = slices(6.0, 20, cycle_ms)
    result = load(tmp_path, sleeping(6.0), 4, windows, think_ms, pacing_ms)
    assert result.throughput_rps == pytest.approx(4 / cycle_ms * 1e3, rel=1e-3)


@pytest.mark.promise
def test_a_request_that_was_paused_with_its_service_counts_without_the_pause(
    tmp_path: Path,
) -> None:
    windows, pause_ms = cut(50, 2), 60
    result = load(tmp_path, sleeping(6.0), 1, windows)
    # The last request of the first window ended two thirds of its time after the window's end.
    rows = np.array(result.rows[0])
    last = np.flatnonzero(rows["planned_ns"] < windows[0, END])[-1]
    rows["done_ns"][last] += pause_ms * MS
    pauses = np.array([[0, pause_ms * MS]]) + windows[0, END]
    paused = replace(result, pauses=pauses)
    paused.__dict__["rows"] = [rows]
    assert paused.throughput_rps == pytest.approx(result.throughput_rps)


def test_failures_take_time_and_are_no_throughput(tmp_path: Path) -> None:
    result = load(tmp_path, sleeping(6.0), 4, cut(50, 20))
    whole = result.throughput_rps
    changed = np.array(result.rows[0])
    changed["error"][::2] = 1
    result.__dict__["rows"] = [changed]
    assert result.throughput_rps == pytest.approx(whole / 2, rel=0.02)
    assert result.requests_counted == pytest.approx(whole * result.counted_ns / 1e9)


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


def test_the_summary_of_a_load_and_a_trial_have_the_same_throughput(tmp_path: Path) -> None:
    # Requests are planned every 10 ms for 2 s and done 0.3 s later: 30 after the last plan.
    done_s = np.arange(201) / 100 + 0.3
    result = load_result(tmp_path, done_s, errors={"status": 20})
    told = summary(result, WORK, check(result, WORK)).throughput_rps
    assert told == request_columns(result)["throughput_rps"]
    assert told == pytest.approx((201 - 30 - 20) / 2)


def test_a_throughput_without_most_answers_has_a_warning(tmp_path: Path) -> None:
    slow = load_result(tmp_path / "slow", np.arange(201) / 100 + 3, latency_s=3.0)
    quick = load_result(tmp_path / "quick", np.arange(201) / 100 + 3, latency_s=0.3)
    (told,) = [
        remark.text
        for remark in summary(slow, WORK, check(slow, WORK)).warnings
        if "throughput" in remark.text
    ]
    assert told.startswith("throughput leaves out 201 of 201 successes")
    assert "throughput" not in str(summary(quick, WORK, check(quick, WORK)).warnings)
