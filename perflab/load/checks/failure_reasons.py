"""Which failures make a load invalid, and whose they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perflab.load.checks.failures import CLOSINGS, LEAST_IDLE_NS, UNSENT, Cause, in_words
from perflab.load.clients.client import few_files_for
from perflab.load.clients.outcome import AFTER, CUT_OFF, MEASURE
from perflab.load.records.result import LoadResult
from perflab.load.workload.arrivals import ClosedLoop, OpenLoop, Scripted
from perflab.load.workload.schedule import last_instant_s, planned_count
from perflab.load.workload.workload import Workload
from perflab.recordings.responses import SOME_FAILED, TOO_MANY_FAILED
from perflab.recordings.schema import Reason, Remark, Side

# Up to here times are between the ends that the failed requests leave, and a comparison asks that
# both sides fail alike (:mod:`perflab.analysis.doubts.failed_requests`).
MAX_ERROR_SHARE = 0.05
MIN_LASTED_SHARE = 0.99
CLIENT_FAULTS = ("ports", "files", "machine", "script")
# A result of the study, not a failure, where the workload says so (``may_time_out``).
TIMEOUT = "timeout"
ON_START = "in on_start: "


def failed(causes: Sequence[Cause]) -> int:
    """Return how many measured requests failed by the server's fault."""
    return sum(cause.count for cause in causes if cause.error not in (*CUT_OFF, *CLIENT_FAULTS))


def reasons(result: LoadResult, workload: Workload, causes: Sequence[Cause]) -> list[Reason]:
    """Return the reasons against a load's numbers, given its :func:`failures.causes`."""
    problems = _missing(result, workload, failed(causes))
    if not result.requests_measured and not len(result.messages):
        problems.append(Reason(code="load.nothing_measured", text="no request was measured"))
    for cause in causes:
        if cause.error in CLIENT_FAULTS:
            text = f"requests failed on the client's side: {cause.text}"
            problems.append(Reason(code="client.failures", side="client", text=text))
    _, share, text = _unexpected(result, workload, causes)
    if share > MAX_ERROR_SHARE:
        problems.append(Reason(code=TOO_MANY_FAILED, side="server", text=text))
    return problems


def remarks(result: LoadResult, workload: Workload, causes: Sequence[Cause]) -> list[Remark]:
    """Return a remark on failures that are too few to refuse the load."""
    told = []
    number, share, text = _unexpected(result, workload, causes)
    if number and share <= MAX_ERROR_SHARE:
        told.append(Remark(code=SOME_FAILED, side="server", text=text))
    share, text = _users_lost(result, workload)
    if 0 < share <= MAX_ERROR_SHARE:
        told.append(Remark(code="load.users_lost", text=text))
    return told


def _unexpected(
    result: LoadResult, workload: Workload, causes: Sequence[Cause]
) -> tuple[int, float, str]:
    """Return how many requests failed by the server's fault, their share, and both in words.

    With a stop by failures, the failures are the result of the study.
    """
    expected = (TIMEOUT,) if workload.may_time_out else ()
    unexpected = [cause for cause in causes if cause.error not in (*CLIENT_FAULTS, *expected)]
    number = 0 if workload.stop.failures else failed(unexpected)
    # Of users who only listen there are no requests but those that failed.
    count, what = max((result.requests_measured, "requests"), (len(result.sockets), "WebSockets"))
    text = f"{number} of {count} {what} failed: {in_words(unexpected)}"
    return number, number / max(1, count), text


def on_kept_connections(result: LoadResult, workload: Workload) -> list[Remark]:
    """Return a remark on failures that met a connection which the server was just closing.

    Only where each user has a connection of its own is it known how long one was idle. A failure
    for another reason also meets connections that were idle for a shorter time than others that
    served: then nothing is said. Where users share connections, it is said if all failures met one
    that had served before.
    """
    if isinstance(workload.arrivals, OpenLoop):
        return _on_shared_connections(result, workload)
    has_own = isinstance(workload.arrivals, ClosedLoop | Scripted) and not workload.connections.most
    failed_ns, served_ns = [np.empty(0)], [np.empty(0)]
    for _, rows in result.measured_by_worker() if has_own and workload.client == "lean" else ():
        by_user = rows[np.lexsort((rows["done_ns"], rows["user"]))]
        before, after = by_user[:-1], by_user[1:]
        is_kept = (before["user"] == after["user"]) & (after["connect_ns"] == 0)
        idle_ns = after["sent_ns"] - before["done_ns"]
        is_unanswered = np.isin(after["error"], CLOSINGS) & (after["first_byte_ns"] == 0)
        failed_ns.append(idle_ns[is_kept & is_unanswered & (after["sent_ns"] > 0)])
        served_ns.append(idle_ns[is_kept & (after["error"] == 0)])
    failed, served = np.concatenate(failed_ns), np.concatenate(served_ns)
    shortest_ns = failed.min(initial=math.inf)
    if not LEAST_IDLE_NS < shortest_ns < math.inf or (served > 1.05 * shortest_ns).any():
        return []
    text = f"{len(failed)} failures met a kept connection that the server was closing; its"
    text += f" keep-alive time-out seems to be {shortest_ns / 1e9:.1f} s: users who wait for less"
    return [Remark(code="server.keep_alive", side="server", text=f"{text} do not meet it")]


def _on_shared_connections(result: LoadResult, workload: Workload) -> list[Remark]:
    def is_closed(rows: np.ndarray) -> np.ndarray:
        closed: np.ndarray = np.isin(rows["error"], CLOSINGS) & (rows["first_byte_ns"] == 0)
        closed &= (rows["stage"] == MEASURE) & (rows["sent_ns"] > 0)
        return closed

    count = result.count(is_closed) if workload.client == "lean" else 0
    fresh = result.count(lambda rows: is_closed(rows) & (rows["connect_ns"] > 0))
    if fresh or not count:
        return []
    text = f"{count} failures met a connection that had served before and was closed without an"
    text += " answer, and none a new one: the server may end each after some requests or some time"
    return [Remark(code="server.keep_alive", side="server", text=text)]


def _missing(result: LoadResult, workload: Workload, failed: int) -> list[Reason]:
    # Requests of the stage ``after`` only keep the load up: they are not of the plan.
    recorded = result.count(lambda rows: rows["stage"] != AFTER)
    planned = planned_count(workload.arrivals)
    problems = []
    if planned >= 0 and recorded + result.unsent != planned:
        text = f"{planned} requests were planned, but {recorded} were recorded and"
        text += f" {result.unsent} were not sent"
        problems.append(Reason(code="load.incomplete", side="client", text=text))
    if result.stopped:
        return problems
    if (lost := _users_lost(result, workload))[0] > MAX_ERROR_SHARE:
        problems.append(Reason(code="load.users_lost", text=lost[1]))
    given_up = result.count(lambda rows: (rows["error"] == UNSENT) & (rows["stage"] != AFTER))
    if result.unsent + given_up:
        problems.append(_unsent(result, workload, recorded - given_up, given_up, failed))
    planned_s = _planned_s(result, workload)
    if result.lasted_s < MIN_LASTED_SHARE * planned_s:
        text = f"the load ended after {result.lasted_s:.3g} s, but {planned_s:g} s were planned"
        side: Side = "server" if failed else "unknown"
        problems.append(Reason(code="load.short", side=side, text=text))
    return problems


def _users_lost(result: LoadResult, workload: Workload) -> tuple[float, str]:
    """Return the share of users who did not get beyond ``on_start``, and who they are in words."""
    users = getattr(workload.arrivals, "users", 0)
    texts = (text for text in result.first_errors.values() if ON_START in text)
    why = next(texts, "").partition("\n")[0]
    text = f"{result.users_lost} of {users} users did not get beyond on_start ({why})"
    return result.users_lost / max(1, users), text.removesuffix(" ()")


def _unsent(
    result: LoadResult, workload: Workload, sent: int, given_up: int, failed: int
) -> Reason:
    arrivals = workload.arrivals
    text = f"{result.unsent + given_up} planned requests were never sent"
    if not isinstance(arrivals, OpenLoop):
        # Users whose requests failed lost their turns. Otherwise nobody can tell who kept them
        # waiting; a late client has reasons of its own.
        side: Side = "server" if failed or given_up else "unknown"
        return Reason(code="load.unsent", side=side, text=text)
    length_s = max(last_instant_s(arrivals), 1e-9)
    total = sent + result.unsent + given_up
    text += f": the load reached {_rate(sent / length_s)} of the planned {_rate(total / length_s)}"
    # The client alone starts requests by a schedule. A request that it started and could not send
    # waited for a connection that the server had not given back.
    side, why = "client", "the client could not keep up"
    few = few_files_for(workload.connections)
    if not result.unsent and few:
        why = few
    elif not result.unsent:
        side, why = (
            "server",
            "the server kept all connections busy (--connections sets their number)",
        )
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
    if arrivals.requests and result.requests_measured >= arrivals.requests:
        return 0.0
    return arrivals.warmup_s + arrivals.duration_s
