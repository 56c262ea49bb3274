"""Which requests of a load failed or never ended, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from perflab.host.shortages import few_files
from perflab.load.clients.client import DEFAULT_CONNECTIONS, SPARE_FILES
from perflab.load.clients.outcome import AFTER, CODES, CUT_OFF, ERRORS, MEASURE
from perflab.load.records.looks import FailureStop
from perflab.load.records.result import LoadResult
from perflab.load.workload.arrivals import ClosedLoop, OpenLoop, Scripted
from perflab.load.workload.schedule import last_instant_s, planned_count
from perflab.load.workload.workload import Workload
from perflab.recordings.responses import SOME_FAILED, TOO_MANY_FAILED
from perflab.recordings.schema import Reason, Remark, Side

# Texts for error classes whose failures have no message of their own.
WORDS = {
    "timeout": "no whole answer within the time-out (--timeout)",
    "silent": "a WebSocket got nothing, not even an answer to a ping",
    "closed": "the server closed the connection before it answered",
    "truncated": "the server closed the connection in the middle of its answer",
    "no_close_notify": "the connection ended without TLS's close_notify, and the answer has no "
    "length: nothing says that it is whole",
    "aborted": "still under way when the load was ended",
    "unsent": "no connection became free before the load ended",
}
MOST_STATUSES = 1_000
STATUS = CODES["status"]
CLOSINGS = (CODES["closed"], CODES["reset"])
LEAST_IDLE_NS = 0.1e9
UNSENT = CODES["unsent"]


@dataclass(frozen=True)
class Cause:
    """``count`` requests failed alike; ``status`` is not 0 only for unexpected statuses."""

    error: str
    status: int
    count: int
    first: str

    @property
    def text(self) -> str:
        """Return it in words: ``100 x status 404 (first: HTTP/1.1 404 Not Found, 9 bytes)``."""
        label = f"{self.error} {self.status}" if self.status else self.error
        return f"{self.count} x {label}" + (f" (first: {self.first})" if self.first else "")


def causes(result: LoadResult) -> list[Cause]:
    """Return the causes of failure in the measure stage, the most frequent first."""
    return _counted(result, [_keys(rows) for _, rows in result.measured_by_worker()])


def _counted(result: LoadResult, pieces: Sequence[np.ndarray]) -> list[Cause]:
    all_keys = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)
    keys, counts = np.unique(all_keys, return_counts=True)
    causes = []
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        code, status = divmod(key, MOST_STATUSES)
        if code:
            kind = ERRORS[code]
            causes.append(Cause(kind, status, count, _first(result, kind, status)))
    return sorted(causes, key=lambda cause: -cause.count)


def in_words(causes: Sequence[Cause], most: int = 3) -> str:
    """Return the most frequent causes as one line."""
    shown = ", ".join(cause.text for cause in causes[:most])
    return shown + (f", and {len(causes) - most} more causes" if len(causes) > most else "")


def _keys(rows: np.ndarray) -> np.ndarray:
    codes = rows["error"].astype(np.int32)
    return codes * MOST_STATUSES + np.where(codes == STATUS, rows["status"], 0)


def _first(result: LoadResult, kind: str, status: int) -> str:
    texts = result.first_errors
    of_kind = (text for (text_kind, _), text in texts.items() if text_kind == kind)
    return texts.get((kind, status)) or next(of_kind, "") or WORDS.get(kind, "")


@dataclass(frozen=True)
class Part:
    """Requests on one side of the stop; the load's own end cut ``given_up`` of them off."""

    requests: int
    successes: int
    failures: int
    given_up: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class AroundStop:
    """Requests that ended until the stop (warm-up included), after it, or were under way at it.

    ``until.failures`` is the number that ended the load; it is larger only if several failures
    ended at the same instant. ``under_way`` requests were started and had not ended.
    """

    stop: FailureStop
    until: Part
    after: Part
    under_way: int


def around_stop(result: LoadResult) -> AroundStop | None:
    """Return the requests on both sides of the stop; None where failures did not end the load."""
    stop = result.failure_stop
    if stop is None:
        return None
    under_way = sum(
        int(((rows["started_ns"] <= stop.at_ns) & (rows["done_ns"] > stop.at_ns)
             & (rows["error"] != UNSENT)).sum())
        for rows in result.chunks()
    )  # fmt: skip
    return AroundStop(
        stop, _part(result, stop, late=False), _part(result, stop, late=True), under_way
    )


def _part(result: LoadResult, stop: FailureStop, *, late: bool) -> Part:
    requests, pieces = 0, []
    for rows in result.chunks():
        of_part = rows[(rows["done_ns"] > stop.at_ns) == late]
        requests += len(of_part)
        pieces.append(_keys(of_part))
    causes = _counted(result, pieces)
    given_up = sum(cause.count for cause in causes if cause.error in CUT_OFF)
    failures = sum(cause.count for cause in causes) - given_up
    return Part(requests, requests - failures - given_up, failures, given_up, tuple(causes))


def stop_shown(result: LoadResult) -> dict[str, Any]:
    """Return the member ``stop`` of a summary, where failures ended the load; else nothing."""
    around = around_stop(result)
    if around is None:
        return {}
    shown = asdict(around)
    return {"stop": {**shown.pop("stop"), **shown}}


# Up to here times are between the ends that the failed requests leave, and a comparison asks that
# both sides fail alike (:mod:`perflab.analysis.doubts.failed_requests`).
MAX_ERROR_SHARE = 0.05
MIN_LASTED_SHARE = 0.99
CLIENT_FAULTS = ("ports", "files", "machine", "script")
# A result of the study, not a failure, where the workload says so (``may_time_out``).
TIMEOUT = "timeout"


def failed(causes: Sequence[Cause]) -> int:
    """Return how many measured requests failed by the server's fault."""
    return sum(cause.count for cause in causes if cause.error not in (*CUT_OFF, *CLIENT_FAULTS))


def reasons(result: LoadResult, workload: Workload, causes: Sequence[Cause]) -> list[Reason]:
    """Return the reasons against a load's numbers, given its :func:`failure_causes.causes`."""
    measured = len(result.measured(lambda rows: rows["error"]))
    problems = _missing(result, workload, failed(causes))
    if not measured and not len(result.messages):
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
    number, share, text = _unexpected(result, workload, causes)
    if not number or share > MAX_ERROR_SHARE:
        return []
    return [Remark(code=SOME_FAILED, side="server", text=text)]


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
    measured = len(result.measured(lambda rows: rows["error"]))
    count, what = max((measured, "requests"), (len(result.sockets), "WebSockets"))
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
    count = fresh = 0
    for rows in result.chunks() if workload.client == "lean" else ():
        is_closed = np.isin(rows["error"], CLOSINGS) & (rows["first_byte_ns"] == 0)
        is_closed &= (rows["stage"] == MEASURE) & (rows["sent_ns"] > 0)
        count += int(is_closed.sum())
        fresh += int((is_closed & (rows["connect_ns"] > 0)).sum())
    if fresh or not count:
        return []
    text = f"{count} failures met a connection that had served before and was closed without an"
    text += " answer, and none a new one: the server may end each after some requests or some time"
    return [Remark(code="server.keep_alive", side="server", text=text)]


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
    few = few_files((workload.connections.most or DEFAULT_CONNECTIONS) + SPARE_FILES)
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
    measured = len(result.measured(lambda rows: rows["stage"]))
    if arrivals.requests and measured >= arrivals.requests:
        return 0.0
    return arrivals.warmup_s + arrivals.duration_s
