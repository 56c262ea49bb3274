"""Whether a load carried out its plan, and whether its requests were answered.

One rule holds for loads of every kind: a load that ends before its plan is refused, whatever the
cause, unless a stop was asked for. A plan is a number of requests where that is known before the
start, and a length of time where the answers decide the number.
"""

from __future__ import annotations

from collections.abc import Sequence

from perflab.load.checks.failure_causes import Cause, in_words
from perflab.load.clients.outcome import AFTER, CODES, CUT_OFF
from perflab.load.records.result import LoadResult
from perflab.load.workload.arrivals import ClosedLoop, OpenLoop, Scripted
from perflab.load.workload.schedule import last_instant_s, planned_count
from perflab.load.workload.workload import Workload
from perflab.recordings.schema import Reason, Side

MAX_ERROR_SHARE = 0.01
MIN_LASTED_SHARE = 0.99
CLIENT_FAULTS = ("ports", "files", "script")
UNSENT = CODES["unsent"]
# A result of the study, not a failure, where the workload says so (``may_time_out``).
TIMEOUT = "timeout"


def failed(causes: Sequence[Cause]) -> int:
    """Return how many measured requests failed by the server's fault."""
    return sum(cause.count for cause in causes if cause.error not in (*CUT_OFF, *CLIENT_FAULTS))


def reasons(result: LoadResult, workload: Workload, causes: Sequence[Cause]) -> list[Reason]:
    """Return the reasons against a load's numbers, given its :func:`failure_causes.causes`."""
    measured = len(result.measured(lambda rows: rows["error"]))
    problems = _missing(result, workload, failed(causes))
    if not measured:
        problems.append(Reason(code="load.nothing_measured", text="no request was measured"))
    for cause in causes:
        if cause.error in CLIENT_FAULTS:
            text = f"requests failed on the client's side: {cause.text}"
            problems.append(Reason(code="client.failures", side="client", text=text))
    expected = (TIMEOUT,) if workload.may_time_out else ()
    unexpected = [cause for cause in causes if cause.error not in (*CLIENT_FAULTS, *expected)]
    # With a stop by failures, the failures are the result of the study.
    if not workload.stop.failures and failed(unexpected) > MAX_ERROR_SHARE * measured:
        text = f"{failed(unexpected)} of {measured} requests failed: {in_words(unexpected)}"
        problems.append(Reason(code="server.failures", side="server", text=text))
    return problems


def _missing(result: LoadResult, workload: Workload, failed: int) -> list[Reason]:
    # Requests of the stage ``after`` only keep the load up: they are not of the plan.
    recorded = sum(int((rows["stage"] != AFTER).sum()) for rows in result.chunks())
    planned = planned_count(workload.arrivals)
    problems = []
    if planned >= 0 and recorded + result.unsent != planned:
        text = f"{planned} requests were planned, but {recorded} were recorded and"
        text += f" {result.unsent} were not sent"
        problems.append(Reason(code="load.incomplete", side="client", text=text))
    if result.stopped:
        return problems
    given_up = sum(
        int(((rows["error"] == UNSENT) & (rows["stage"] != AFTER)).sum())
        for rows in result.chunks()
    )
    if result.unsent + given_up:
        problems.append(_unsent(result, workload, recorded - given_up, given_up, failed))
    planned_s = _planned_s(result, workload)
    if result.lasted_s < MIN_LASTED_SHARE * planned_s:
        text = f"the load ended after {result.lasted_s:.3g} s, but {planned_s:g} s were planned"
        side: Side = "server" if failed else "unknown"
        problems.append(Reason(code="load.short", side=side, text=text))
    return problems


def _unsent(
    result: LoadResult, workload: Workload, sent: int, given_up: int, failed: int
) -> Reason:
    arrivals = workload.arrivals
    text = f"{result.unsent + given_up} planned requests were never sent"
    side: Side
    if not isinstance(arrivals, OpenLoop):
        # Users whose requests failed lost their turns. Otherwise nobody can tell who kept them
        # waiting; a late client has reasons of its own.
        side = "server" if failed or given_up else "unknown"
        return Reason(code="load.unsent", side=side, text=text)
    length_s = max(last_instant_s(arrivals), 1e-9)
    total = sent + result.unsent + given_up
    text += f": the load reached {_rate(sent / length_s)} of the planned {_rate(total / length_s)}"
    # The client alone starts requests by a schedule. A request that it started and could not send
    # waited for a connection that the server had not given back.
    side = "client" if result.unsent else "server"
    why = "the client could not keep up"
    if side == "server":
        why = "the server kept all connections busy (--connections sets their number)"
    return Reason(code="load.unsent", side=side, text=f"{text}; {why}")


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}/s" if per_s >= 100 else f"{per_s:.3g}/s"


def _planned_s(result: LoadResult, workload: Workload) -> float:
    """Return how long the load was to last; 0 where a number of requests ended it."""
    arrivals = workload.arrivals
    if isinstance(arrivals, Scripted):
        return 0.0 if arrivals.actions else arrivals.warmup_s + arrivals.duration_s
    if not isinstance(arrivals, ClosedLoop) or not arrivals.duration_s:
        return 0.0
    measured = len(result.measured(lambda rows: rows["stage"]))
    if arrivals.requests and measured >= arrivals.requests:
        return 0.0
    return arrivals.warmup_s + arrivals.duration_s
