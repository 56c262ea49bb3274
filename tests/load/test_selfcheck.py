"""Each reason for refusing a load, planted alone: it passes at its threshold and not beyond."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.load.checks.selfcheck import SelfCheck, check
from perflab.load.clients.outcome import WARMUP
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload
from perflab.recordings.responses import SOME_FAILED
from tests.load.planted import S, load_result

# 500 requests in 5 s, 300 ms each, of paced users, for whom Little's law is not checked.
CLOSED = ClosedLoop(users=5, requests=500, pacing_s=0.1)
OPEN = OpenLoop(stages=(Stage(rate=100, duration_s=5),))
INSTANTS = ("planned_ns", "started_ns", "sent_ns", "first_byte_ns", "done_ns")
DONE_S = 0.4 + np.arange(501)[:500] * 0.01
Change = Callable[[np.ndarray], object]


def judged(folder: Path, arrivals: Any = CLOSED, number: int = 500, **facts: Any) -> SelfCheck:
    work = Workload(request=Request(), arrivals=arrivals)
    folder = Path(folder) / str(len(list(Path(folder).iterdir())))
    facts = {"cpu_ns": S // 10, **facts}
    return check(load_result(folder, DONE_S[:number], **facts), work)


def only(judgement: SelfCheck) -> tuple[str, str]:
    """Return the only reason and its side."""
    (reason,) = judgement.reasons
    return reason.text, reason.side


def late_start(late_ms: float, share: float = 1.0) -> Change:
    """Return a change by which a share of the requests is started late, and then sent at once."""

    def change(rows: np.ndarray) -> None:
        rows["planned_ns"][len(rows) - round(share * len(rows)) :] -= round(late_ms * 1e6)

    return change


def delays(late_ms: float, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a thousand looks at the event loop, some of them late."""
    return np.linspace(0.4, 5.3, 1000), np.repeat([0.01, late_ms], [1000 - number, number])


@pytest.mark.parametrize(
    ("kind", "share", "service_s", "allowed_ms"),
    [("start", 0.6, 0.0009, 0.2), ("start", 0.6, 0.0045, 0.5), ("start", 0.6, 0.45, 50.0),
     ("start", 0.02, 0.0045, 1.0), ("start", 0.02, 0.045, 5.0), ("start", 0.02, 0.45, 50.0),
     ("loop", 0.6, 0.001, 0.2), ("loop", 0.6, 0.005, 0.5), ("loop", 0.06, 0.001, 1.0),
     ("loop", 0.06, 0.03, 3.0)],
)  # fmt: skip
@pytest.mark.promise
def test_a_planned_load_may_be_late_by_a_tenth_of_its_response_times(
    tmp_path: Path, kind: str, share: float, service_s: float, allowed_ms: float
) -> None:
    """Requests start late, or the event loop is late, above the median or the rank of p99."""

    def late_by(late_ms: float) -> SelfCheck:
        late: dict[str, Any] = {"change": late_start(late_ms, share)}
        if kind == "loop":
            late = {"delays": delays(late_ms, round(1000 * share))}
        return judged(tmp_path, latency_s=service_s, **late)

    assert late_by(0.99 * allowed_ms).valid
    reason, side = only(late_by(1.05 * allowed_ms))
    assert reason.startswith(f"the client was late: up to {1.05 * allowed_ms:.2f} ms of ")
    assert "that it kept back arrive together" in reason
    assert side == "client"


def busy(share: float) -> dict[str, int]:
    """Return the CPU time of a client that used a share of one core (planned: 0.1 to 5.09 s)."""
    return {"cpu_ns": round(share * 4.99 * S)}


@pytest.mark.promise
def test_the_client_of_a_closed_loop_may_use_85_percent_of_its_cores(tmp_path: Path) -> None:
    assert judged(tmp_path, **busy(0.849)).valid
    reason, side = only(judged(tmp_path, **busy(0.86)))
    assert reason == "the client used 86% of its cores: the client may be the limit"
    assert side == "client"
    assert judged(tmp_path, **busy(0.86), cores=2).valid


@pytest.mark.parametrize(("late_ms", "service_s", "valid"), [(4, 0.03, False), (4, 0.05, True)])
def test_the_event_loop_of_a_closed_loop_may_not_queue_for_a_tenth_of_the_response_time(
    tmp_path: Path, late_ms: float, service_s: float, valid: bool
) -> None:
    arrivals = ClosedLoop(users=round(100 * service_s), requests=500)
    late = delays(late_ms, 600)
    judgement = judged(
        tmp_path, arrivals, latency_s=service_s, delays=late, change=first_are_warm_up
    )
    assert judgement.valid == valid
    assert valid or only(judgement)[0].startswith("the client's event loop was 4.00 ms late")


def test_the_client_of_an_open_loop_may_be_busy_but_not_with_its_own_queue(tmp_path: Path) -> None:
    assert judged(tmp_path, OPEN, **busy(0.99), delays=delays(0.9, 600)).valid
    assert judged(tmp_path, OPEN, **busy(0.84), delays=delays(1.1, 600)).valid
    reason, side = only(judged(tmp_path, OPEN, **busy(0.86), delays=delays(1.1, 600)))
    assert reason.startswith("the client used 86% of its cores")
    assert side == "client"


FREE = ClosedLoop(users=30, requests=500)


def first_are_warm_up(rows: np.ndarray) -> None:
    rows["stage"][:60] = WARMUP


@pytest.mark.parametrize(
    ("ratio", "valid"), [(0.96, False), (0.98, True), (1.02, True), (1.04, False)]
)
@pytest.mark.promise
def test_littles_law_must_hold_within_its_range(tmp_path: Path, ratio: float, valid: bool) -> None:
    # 100 requests a second of 300 ms each are 30 users at work.
    judgement = judged(tmp_path, FREE, latency_s=0.3 * ratio, change=first_are_warm_up)
    assert judgement.littles_law_ratio == pytest.approx(ratio, abs=0.005)
    assert judgement.valid == valid
    if not valid:
        reason, side = only(judgement)
        assert reason.startswith("Little's law does not hold: the ratio")
        assert side == "client"


def test_the_edges_of_few_cycles_are_no_breach_of_littles_law(tmp_path: Path) -> None:
    def one_user_waits_long(rows: np.ndarray) -> None:
        """One of 30 users waits from the begin beyond the end: its request does not end inside."""
        rows["stage"][:60] = WARMUP
        for name in ("planned_ns", "started_ns", "sent_ns"):
            rows[name][-1] = rows["planned_ns"][60]

    judgement = judged(tmp_path, FREE, latency_s=0.29, number=90, change=one_user_waits_long)
    assert judgement.littles_law_ratio == pytest.approx(1.0, abs=0.03)


def test_think_time_counts_in_littles_law(tmp_path: Path) -> None:
    thinking = ClosedLoop(users=30, requests=500, think_time_s=0.1)
    assert judged(tmp_path, thinking, latency_s=0.2, change=first_are_warm_up).valid
    assert not judged(tmp_path, thinking, latency_s=0.3, change=first_are_warm_up).valid


@pytest.mark.parametrize("arrivals", [CLOSED, OPEN, ClosedLoop(users=5, requests=500, ramp_s=1)])
def test_littles_law_is_silent_where_users_do_more_than_wait(tmp_path: Path, arrivals: Any) -> None:
    judgement = judged(tmp_path, arrivals, latency_s=0.01)
    assert np.isnan(judgement.littles_law_ratio)
    assert judgement.valid


@pytest.mark.parametrize(("earlier", "later"), [*pairwise(INSTANTS)])
@pytest.mark.promise
def test_instants_that_are_out_of_order_are_no_record(
    tmp_path: Path, earlier: str, later: str
) -> None:
    def swap(rows: np.ndarray) -> None:
        rows[later][7] = rows[earlier][7] - 1

    (reason,) = [
        reason for reason in judged(tmp_path, change=swap).reasons if "out of order" in reason
    ]
    assert reason.text.startswith("1 instants of requests are out of order")
    assert reason.side == "client"


@pytest.mark.parametrize("step_ms", [5.1, -5.1])
@pytest.mark.promise
def test_clocks_that_moved_against_each_other(tmp_path: Path, step_ms: float) -> None:
    assert judged(tmp_path, clock_step_ms=step_ms / 5.1 * 5).valid
    reason, side = only(judged(tmp_path, clock_step_ms=step_ms))
    assert reason.startswith("the machine slept or its clock was set during the load")
    assert f"{step_ms:+.1f} ms" in reason
    assert side == "unknown"


@pytest.mark.parametrize("kind", ["status", "timeout"])
@pytest.mark.promise
def test_one_failure_of_twenty_passes_and_more_do_not(tmp_path: Path, kind: str) -> None:
    passed, refused = (judged(tmp_path, errors={kind: number}) for number in (25, 26))
    assert passed.valid
    (told,) = [one.text for one in passed.warnings if one.code == SOME_FAILED]
    assert told.startswith(f"25 of 500 requests failed: 25 x {kind}")
    assert SOME_FAILED not in {one.code for one in refused.warnings}
    reason, side = only(refused)
    assert reason.startswith(f"26 of 500 requests failed: 26 x {kind}")
    assert side == "server"


@pytest.mark.parametrize("kind", ["ports", "script"])
def test_a_single_failure_of_the_client_refuses(tmp_path: Path, kind: str) -> None:
    reason, side = only(judged(tmp_path, errors={kind: 1}))
    assert reason.startswith(f"requests failed on the client's side: 1 x {kind}")
    assert side == "client"


def test_nothing_measured_is_no_result(tmp_path: Path) -> None:
    def only_warm_up(rows: np.ndarray) -> None:
        rows["stage"] = WARMUP

    reason, side = only(judged(tmp_path, change=only_warm_up, cpu_ns=0))
    assert (reason, side) == ("no request was measured", "unknown")


def test_lateness_counts_until_more_than_half_of_the_requests_are_refused(
    tmp_path: Path,
) -> None:
    late: dict[str, Any] = {"change": late_start(50)}
    half = judged(tmp_path, errors={"connect": 250}, **late)
    more = judged(tmp_path, errors={"connect": 251}, **late)
    assert {reason.side for reason in half.reasons} == {"server", "client"}
    assert {reason.side for reason in more.reasons} == {"server"}


def test_a_load_has_remarks_besides_its_numbers(tmp_path: Path) -> None:
    def warnings(**facts: Any) -> str:
        judgement = judged(tmp_path, **facts)
        assert judgement.valid
        return "; ".join(map(str, judgement.warnings))

    assert warnings(capped=3).startswith("3 requests waited for a free connection")
    assert warnings(resent=3).startswith("3 requests were sent again")
    assert warnings(errors={"aborted": 4}).startswith("4 requests were still under way")
    stopped = warnings(errors={"unsent": 2}, stopped="by the user")
    assert "the load was ended early: by the user" in stopped
    assert "2 requests still waited for a connection" in stopped
    assert not warnings(run_delay_share=0.25, steal_share=0.01)
    assert "had no core for 26% of the time" in warnings(run_delay_share=0.26)
    for share in (0.02, 0.5):
        assert warnings(steal_share=share).startswith("other guests of the machine took ")
