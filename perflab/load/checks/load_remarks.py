"""Remarks on a load and on its numbers: what moved, and what the machine counted meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perflab.load.checks.machine_counts import remarks_on_tcp
from perflab.load.checks.trend import CLIENT_TIME, OF_LOAD, Trend
from perflab.load.clients.client import few_files_for
from perflab.load.clients.outcome import CODES
from perflab.load.records.result import LoadResult
from perflab.load.records.times import Number, Times
from perflab.load.workload.workload import Workload
from perflab.recordings.schema import Remark
from perflab.statistics.in_words import as_share, to_safe_side

# Shares of the client cores' time that others took, from which on they are told.
NOTED_STEAL, NOTED_RUN_DELAY = 0.01, 0.25
QUIET_S = 5.0


def _of_sockets(sockets: np.ndarray) -> dict[str, str]:
    """Return what is to be said of WebSockets that got nothing any more, or whose end is open."""
    last_s, over_s, is_answered = sockets.T
    is_quiet, is_open = over_s - last_s > QUIET_S, is_answered == 0
    texts = {}
    if is_quiet.any():
        count = f"{is_quiet.sum()} of {len(sockets)} WebSockets"
        text = f"{count} got no message for over {QUIET_S:g} s"
        since_s = float(np.median(last_s[is_quiet]))
        texts["load.quiet"] = f"{text} at their end, half of them since second {since_s:.1f}"
    if is_open.any():
        text = f"the server did not answer the end of {is_open.sum()} of {len(sockets)} WebSockets"
        texts["load.unanswered"] = text
    return texts


def of_load(result: LoadResult, workload: Workload) -> list[Remark]:
    """Return the remarks on a load that are not about its times."""
    texts = {}
    if result.stopped:
        text = f"the load was ended early: {result.stopped}"
        if result.failure_stop is not None:
            text += "; times and throughput cover the requests that ended before"
        texts["load.stopped"] = text
    if result.capped:
        text = f"{result.capped} requests waited for a free connection, or over HTTP/2 until the"
        few = few_files_for(workload.connections)
        text += " server took more at a time; see connection wait"
        texts["load.capped"] = "; ".join(filter(None, [text, few]))
    if result.resent:
        text = f"{result.resent} requests were sent again: the server ended their connection, or"
        texts["load.resent"] = f"{text} refused them, before it began them"
    texts |= _of_sockets(result.sockets)
    aborted = result.count(lambda rows: rows["error"] == CODES["aborted"])
    if aborted:
        text = f"{aborted} requests were still under way at the end and given up"
        texts["load.aborted"] = text
    unsent = result.count(lambda rows: rows["error"] == CODES["unsent"])
    if unsent and result.stopped:
        text = f"{unsent} requests still waited for a connection and were given up"
        texts["load.given_up"] = text
    if result.steal_share > NOTED_STEAL:
        text = (
            f"other guests of the machine took {as_share(result.steal_share)} of the client's cores"
        )
        texts["host.steal"] = text
    if result.run_delay_share > NOTED_RUN_DELAY:
        text = f"the client was ready but had no core for {as_share(result.run_delay_share)}"
        text += " of the time: another program runs on its cores"
        texts["generator.run_delay"] = text
    remarks = [Remark(code=code, text=text) for code, text in texts.items()]
    return [*remarks, *remarks_on_tcp(result)]


def of_numbers(response: Times, trend: Trend) -> list[Remark]:
    """Return remarks on response times that are bounds, drift, or hold too much client time."""
    numbers = {name: number for name, number in response.numbers().items() if name != "max"}
    bounds = [
        f"{name} >= {to_safe_side(number.at_least, 'at least'):.10g} ms"
        for name, number in numbers.items()
        if not np.isnan(number.at_least)
    ]
    remarks = []
    if trend.too_large:
        remarks.append(Remark(code=OF_LOAD, text=f"{trend}; a longer load would have others"))
    if bounds:
        lost = {"were cut off before their end": response.elapsed, "failed": response.failed}
        counts = [f"{len(of)} requests {what}" for what, of in lost.items() if len(of)]
        waited = "requests waited while their service was paused for others to have their turn"
        text = f"{' and '.join(counts or [waited])}, so these numbers are bounds: "
        text += ", ".join(bounds)
        remarks.append(Remark(code="load.censored", text=text))
    return [*remarks, *of_client_time(numbers)]


def of_client_time(numbers: Mapping[str, Number]) -> list[Remark]:
    """Return a remark on times of which too much may be the client's own."""
    parts = [
        f"up to {number.client_ms:.2g} ms of {name} {number.value:.3g} ms"
        for name, number in numbers.items()
        if number.is_the_clients and not np.isnan(number.value)
    ]
    if not parts:
        return []
    text = f"more than a tenth of these times may be the client's own: {', '.join(parts)}"
    text += "; they are marked ~, and compared with and without it"
    return [Remark(code=CLIENT_TIME, side="client", text=text)]
