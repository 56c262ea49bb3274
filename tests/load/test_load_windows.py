"""A load that sends only within windows, and a service that is paused between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load.checks.selfcheck import check, littles_law_ratio
from perflab.load.clients.outcome import MEASURE, WARMUP
from perflab.load.records.result import LoadResult
from perflab.load.records.window_table import window_table
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload
from perflab.load.workload.arrivals import Windows
from perflab.load.workload.schedule import instants, planned_count
from perflab.load.workload.windows import cut_at, instants_of, window_of
from perflab.trials.summary import OnTime
from tests.load.planted import BEGIN_NS, load_result
from tests.load.virtual import MS, S, Sent, World

TURNS = [(0.1, 0.4), (0.4, 0.5), (1.0, 1.4)]
SETTLE_MS = 50


def of(turns: list[tuple[float, float]], settle_ms: float = SETTLE_MS) -> Windows:
    spans = [{"start_s": begin, "end_s": end} for begin, end in turns]
    return Windows.model_validate({"spans": spans, "settle_ms": settle_ms})


def closed(world: World, **words: object) -> list[Sent]:
    whole = {"users": 3, "duration_s": 1.5, "windows": of(TURNS), **words}
    return world.closed(ClosedLoop.model_validate(whole))[0]


def place(planned_ns: int) -> tuple[int, bool]:
    """Return the window of an instant (-1: none), and whether it is in its counted part."""
    for number, (begin_s, end_s) in enumerate(TURNS):
        if round(begin_s * S) <= planned_ns < round(end_s * S):
            return number, planned_ns >= round(begin_s * S) + SETTLE_MS * MS
    return -1, False


WORLDS = st.builds(
    World,
    service_ns=st.integers(1 * MS, 300 * MS),
    late_ns=st.integers(0, 30 * MS),
    handling_ns=st.integers(0, 30 * MS),
)


@settings(max_examples=20, deadline=None)
@given(WORLDS, st.sampled_from([{}, {"think_time_s": 0.02}, {"pacing_s": 0.05}]))
def test_users_plan_nothing_outside_of_the_windows_and_count_after_they_have_settled(
    world: World, words: dict[str, float]
) -> None:
    requests = closed(world, **words)
    assert {request.user for request in requests} == {0, 1, 2}
    for request in requests:
        window, counts = place(request.planned_ns)
        assert window >= 0
        assert request.stage == (MEASURE if counts else WARMUP)


def test_users_wait_for_the_next_window_and_start_when_it_begins() -> None:
    requests = closed(World(service_ns=30 * MS))
    for user in range(3):
        planned_ns_of_user = [request.planned_ns for request in requests if request.user == user]
        # Ten requests in the first 300 ms; users go on without a pause in the adjoining window.
        assert planned_ns_of_user[0] == 100 * MS
        assert next(at for at in planned_ns_of_user if 400 * MS <= at < 500 * MS) == 400 * MS
        assert next(at for at in planned_ns_of_user if at >= 500 * MS) == 1000 * MS


@pytest.mark.parametrize("kind", ["constant", "poisson"])
def test_an_open_load_keeps_the_arrivals_that_lie_in_windows(kind: str) -> None:
    whole = OpenLoop(stages=(Stage(rate=200, duration_s=1.5),), arrivals=kind, seed=4)
    some = whole.model_copy(update={"windows": of(TURNS)})
    every = np.concatenate(list(instants(whole))).tolist()
    in_windows = [at for at in every if place(at)[0] >= 0]
    assert 0 < len(in_windows) < len(every)
    assert planned_count(some) == len(in_windows)
    assert (
        sorted(at for worker in range(3) for part in instants(some, worker, 3) for at in part)
        == in_windows
    )
    requests, _ = World(service_ns=20 * MS, late_ns=3 * MS).opened(some)
    assert [request.planned_ns for request in requests] == in_windows
    assert [request.stage == MEASURE for request in requests] == [place(at)[1] for at in in_windows]


def test_a_window_that_is_left_out_counts_in_no_number(tmp_path: Path) -> None:
    # A request of 10 ms after the other, and of 20 ms in the second window.
    done_s = np.concatenate([0.11 + np.arange(30) * 0.01, 0.42 + np.arange(4) * 0.02])
    load = load_result(
        tmp_path / "load",
        np.append(done_s, 1.06 + np.arange(30) * 0.01),
        latency_s=0.01,
        change=lambda rows: rows["planned_ns"].__setitem__(
            slice(30, 34), rows["done_ns"][30:34] - 20 * MS
        ),
        windows=instants_of(ClosedLoop(users=1, duration_s=1.5, windows=of(TURNS)), BEGIN_NS),
    )
    rest = load.without_windows([1, 7])
    assert load.requests["stage"].value_counts()["measure"] == 64 - 4
    assert len(window_table(rest)) == 2
    assert rest.counted_ns == load.counted_ns - 50 * MS
    assert rest.cpu_ns == pytest.approx(load.cpu_ns * rest.counted_ns / load.counted_ns)
    assert rest.measured(lambda rows: rows["done_ns"] - rows["planned_ns"]).max() == 10 * MS
    assert load.without_windows([]) is load
    # The service worked in a window that is left out between others, and not after the last.
    on_ns = OnTime.of(load).on_ns
    assert OnTime.of(rest).on_ns == on_ns == 800 * MS
    assert OnTime.of(load.without_windows([2])).on_ns == on_ns - 400 * MS


def test_windows_in_the_warm_up_are_sent_and_do_not_count() -> None:
    requests = closed(World(), duration_s=0.8, warmup_s=0.7)
    stages = {request.planned_ns >= S: request.stage for request in requests}
    # The counted part of the third window does count.
    assert stages == {False: WARMUP, True: MEASURE}
    arrivals = ClosedLoop(users=1, duration_s=0.8, warmup_s=0.7, windows=of(TURNS))
    lengths = np.diff(instants_of(arrivals)[:, 1:])[:, 0]
    assert lengths.tolist() == [0, 0, 350 * MS]


def test_a_load_that_was_ended_early_has_the_windows_until_then() -> None:
    windows = np.array([[10, 12, 20], [20, 22, 30], [50, 52, 60]])
    assert cut_at(windows, 25).tolist() == [[10, 12, 20], [20, 22, 25]]
    assert cut_at(windows, 5).tolist() == [[5, 5, 5]]


# ---- a finished load with a planted truth: two windows of a second, apart by eight -------------
WINDOWS = BEGIN_NS + np.array([[0, 100 * MS, S], [9 * S, 9 * S + 100 * MS, 10 * S]])
PLANTED = ClosedLoop(
    users=2, duration_s=10, windows=of([(0, 1), (9, 10)], settle_ms=100), max_duration_s=20
)
WORK = Workload(request=Request(), arrivals=PLANTED)


def planted(
    folder: Path, change: Callable[[np.ndarray], object] = lambda _: None, **facts: object
) -> LoadResult:
    """Return a load of two users with requests of 100 ms, without a pause, in both windows."""
    done_s = np.repeat(np.concatenate([np.arange(1, 11), np.arange(91, 101)]) / 10, 2)

    def settle(rows: np.ndarray) -> None:
        rows["user"] = np.arange(len(rows)) % 2
        counted_ns = WINDOWS[window_of(rows["planned_ns"], WINDOWS), 1]
        rows["stage"] = np.where(rows["planned_ns"] < counted_ns, WARMUP, MEASURE)
        change(rows)

    given: dict[str, Any] = {"windows": WINDOWS, "cpu_ns": 18 * 10**8, "lasted_s": 10.0, **facts}
    return load_result(folder, done_s, latency_s=0.1, change=settle, **given)


def test_throughput_is_what_was_completed_in_counted_parts_over_their_length(
    tmp_path: Path,
) -> None:
    result = planted(tmp_path)
    assert result.requests["window"].tolist() == [0] * 20 + [1] * 20
    assert littles_law_ratio(result, WORK) == pytest.approx(1)
    assert result.throughput_rps == pytest.approx(20)
    assert result.counted_ns == 1_800_000_000
    table = window_table(result)
    assert table["finished"].tolist() == [20, 20]


def test_requests_that_a_window_carries_over_are_counted(tmp_path: Path) -> None:
    def delayed(rows: np.ndarray) -> None:
        last = np.flatnonzero(rows["planned_ns"] < BEGIN_NS + S)[-3:]
        rows["done_ns"][last[0]] = BEGIN_NS + S + MS  # ends in the gap
        rows["done_ns"][last[1:]] = BEGIN_NS + 9 * S + MS  # ends in the next window

    table = window_table(planted(tmp_path, delayed))
    assert table["carried_over"].tolist() == [2, 0]


def test_the_client_is_judged_within_counted_parts_alone(
    tmp_path: Path,
) -> None:
    every_s = np.arange(1, 2001) / 200
    inside = (every_s > 0.15) & (every_s < 0.95) | (every_s > 9.15) & (every_s < 9.95)
    late_outside = planted(tmp_path / "a", delays=(every_s, np.where(inside, 0.01, 4.0)))
    late_inside = planted(tmp_path / "b", delays=(every_s, np.where(inside, 4.0, 0.01)))
    assert check(late_outside, WORK).loop_delay_p50_ms == pytest.approx(0.01)
    assert check(late_inside, WORK).loop_delay_p50_ms == pytest.approx(4.0)
    assert check(late_outside, WORK).client_cpu_share == pytest.approx(1)


REQUESTS = 400
# The ends of requests of 10 ms, one after the other.
DONE_S = 0.01 * np.arange(1, REQUESTS + 1)


def paused_under(tmp_path: Path, requests: int, pause_ms: int = 300) -> LoadResult:
    """Return a load of 10 ms requests; the service was paused during some of the last."""
    # Each of these runs alone, after all others, and is paused after 6 ms.
    planned_ns = BEGIN_NS + (10 + np.arange(requests, dtype=np.int64)) * S
    pauses = np.stack([planned_ns, planned_ns + pause_ms * MS], axis=1) + 6 * MS

    def change(rows: np.ndarray) -> None:
        for instant in ("planned_ns", "started_ns", "sent_ns"):
            rows[instant][-requests:] = planned_ns
        rows["done_ns"][-requests:] = pauses[:, 1] + 4 * MS

    return load_result(tmp_path, DONE_S, latency_s=0.01, change=change, pauses=pauses)


def test_a_number_that_pauses_could_move_is_a_bound(tmp_path: Path) -> None:
    by_name = paused_under(tmp_path, requests=8).response_times.numbers()
    # Of 400 requests eight waited for 300 ms: 6 ms of 16.
    assert by_name["mean"].at_least == pytest.approx(10)
    assert np.isnan(by_name["mean"].value)
    assert np.isnan(by_name["p99"].value)
    assert by_name["p99"].at_least == pytest.approx(10)
    # So few pauses cannot move the median.
    assert by_name["p50"].value == pytest.approx(10)


def test_a_pause_that_moves_nothing_is_taken_out(tmp_path: Path) -> None:
    result = paused_under(tmp_path, requests=1, pause_ms=100)
    assert result.response_times.numbers()["mean"].value == pytest.approx(10)
    assert result.response_times.paused_share == pytest.approx(100 / (REQUESTS * 10))
