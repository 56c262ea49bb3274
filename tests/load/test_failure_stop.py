"""Loads that end at a number of failures: the marked rows and the summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perflab.cli.load_status import Status, status_of
from perflab.load.checks.selfcheck import check
from perflab.load.clients.outcome import AFTER_STOP, CODES, MEASURE, WARMUP
from perflab.load.records import columns
from perflab.load.records.failure_stop import FailureStop, mark
from perflab.load.records.record import failure_stop_of
from perflab.load.records.result import LoadResult
from perflab.load.report import summary
from perflab.load.summary_table import WIDTH, table
from perflab.load.workload import ClosedLoop, Request, StopRules, Workload
from tests.load.planted import BEGIN_NS, S, load_result
from tests.load.processes import a_worker, served


def written(folder: Path, done: list[int], errors: list[str], stages: list[int]) -> None:
    """Write the rows of one worker, given the ends of its requests."""
    folder.mkdir(parents=True)
    rows = np.zeros(len(done), dtype=columns.ROW)
    rows["done_ns"], rows["stage"] = done, stages
    rows["error"] = [CODES[name] for name in errors]
    (folder / columns.REQUESTS).write_bytes(rows.tobytes())


def stages_of(folder: Path) -> list[int]:
    return [int(stage) for stage in columns.rows(folder)["stage"]]


def test_the_stop_is_the_failure_that_completes_the_number_over_all_workers(
    tmp_path: Path,
) -> None:
    written(tmp_path / "0", [10, 30, 50, 70], ["reset", "", "reset", ""], [MEASURE] * 4)
    written(tmp_path / "1", [20, 40, 60], ["", "timeout", "connect"], [WARMUP, MEASURE, WARMUP])
    written(tmp_path / "2", [], [], [])
    assert mark(tmp_path, 3, 3) == 50, "the third of 10, 40, 50 and 60"
    assert stages_of(tmp_path / "0") == [MEASURE, MEASURE, MEASURE, AFTER_STOP]
    assert stages_of(tmp_path / "1") == [WARMUP, MEASURE, AFTER_STOP]


def test_requests_cut_off_by_the_end_are_no_failures_and_fewer_failures_change_no_row(
    tmp_path: Path,
) -> None:
    written(tmp_path / "0", [10, 20, 30], ["reset", "aborted", "unsent"], [MEASURE] * 3)
    assert mark(tmp_path, 1, 2) == 0
    assert stages_of(tmp_path / "0") == [MEASURE] * 3
    assert mark(tmp_path, 1, 1) == 10


@pytest.mark.parametrize("stopped", ["interrupted", "a service died"])
def test_failures_during_an_end_for_another_reason_do_not_end_the_load(
    tmp_path: Path, stopped: str
) -> None:
    rows = [BEGIN_NS + second * S for second in range(1, 9)]
    written(tmp_path / "0", rows, ["reset"] * 8, [MEASURE] * 8)
    reports = [{"start_ns": BEGIN_NS}]
    assert failure_stop_of(tmp_path, reports, WORK, stopped) is None
    assert stages_of(tmp_path / "0") == [MEASURE] * 8
    stop = failure_stop_of(tmp_path, reports, WORK, WORK.stop.failures_reached)
    # Of 50 users one joins every second.
    assert stop == FailureStop(5, BEGIN_NS + 5 * S, 5.0, users=6)


WORK = Workload(
    request=Request(),
    arrivals=ClosedLoop(users=50, duration_s=60, ramp_s=50, pacing_s=2),
    stop=StopRules(failures=5),
)


def stopped(folder: Path) -> LoadResult:
    """Plant a load of 500 requests in 5 s, the last 100 of which ended after the fifth failure."""

    def cut(rows: np.ndarray) -> None:
        rows["error"][[100, 200, 300, 350, 399]] = CODES["reset"]
        rows["error"][[400, 410, 420]] = CODES["timeout"]
        rows["error"][490:] = CODES["unsent"]
        rows["started_ns"][490:] = 0
        rows["stage"][400:] = AFTER_STOP
        # Requests that ended later took long.
        rows["done_ns"][400:490] += 20 * S

    result = load_result(folder, np.linspace(0.41, 5.4, 500), change=cut)
    at_ns = int(result.rows[0]["done_ns"][399])
    stop = FailureStop(5, at_ns, (at_ns - BEGIN_NS) / 1e9, users=7)
    return replace(result, failure_stop=stop, stopped="5 requests failed", lasted_s=30.0)


def test_a_load_that_failures_end_is_valid_and_its_failures_are_its_answer(
    tmp_path: Path,
) -> None:
    result = stopped(tmp_path / "a")
    assert check(result, WORK).reasons == ()
    other = WORK.model_copy(update={"stop": StopRules()})
    without = replace(stopped(tmp_path / "b"), failure_stop=None)
    told = [
        {remark.code for remark in check(*load).warnings}
        for load in ((result, WORK), (without, other))
    ]
    assert ["server.some_failed" in codes for codes in told] == [False, True]


def test_the_summary_holds_what_ended_until_the_stop_and_counts_the_rest(tmp_path: Path) -> None:
    result = stopped(tmp_path)
    shown = summary(result, WORK, check(result, WORK))
    assert (shown.requests, shown.errors) == (400, 5)
    # A failed request might have taken longer.
    assert shown.response_time.at_least_ms["max"] == pytest.approx(300)
    # 395 of 400 requests at 100 a second; the window begins with the first planned instant.
    assert shown.throughput_rps == pytest.approx(395 / (0.3 + 399 / 100))
    text = table(shown)
    words = " ".join(text.split())
    assert "stopped at 5 failures after 4.40 s with 7 users active" in words
    assert "until the stop: 395 successes, 5 failures (5 x reset)" in words
    # A response takes 0.3 s, so 30 of the 90 had been started by then.
    assert "after it, 30 having been under way: 87 successes, 3 failures, 10 given up" in words
    assert "times and throughput cover the requests that ended before" in words
    assert max(map(len, text.splitlines())) <= WIDTH
    assert status_of(shown) == Status.MISSED


REFUSALS = {"server.failures", "load.incomplete", "load.unsent", "load.short", "client.failures"}


@pytest.mark.promise
def test_the_failures_of_several_workers_end_the_load_of_all_together() -> None:
    good = 12
    # All four users of each worker fail in the second round: no single worker has nine failures.
    arrivals = ClosedLoop(users=12, duration_s=30, pacing_s=3)
    work = Workload(request=Request(), arrivals=arrivals, stop=StopRules(failures=9))
    with served("0.1", str(good)) as port, a_worker(3) as generator:
        result = generator.run(work, f"http://127.0.0.1:{port}")
    assert result.cores == 1, "which all three workers share"
    assert result.failure_stop is not None
    assert (result.failure_stop.failures, result.failure_stop.users) == (9, 12)
    rows = result.requests
    measured = rows[rows["stage"] == "measure"]
    assert (measured["error"] == "status").sum() == 9
    late = rows[rows["stage"] == "after_stop"]
    assert (late["error"] == "status").all()
    assert len(late) >= 3
    # Ten rounds fit in 30 s; a slow machine may begin a third one before all workers know.
    assert len(rows) < 6 * good
    assert not {reason.code for reason in check(result, work).reasons} & REFUSALS
    result.discard()
