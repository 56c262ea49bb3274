"""Instruments of a load's record: its requests and streams, and the services' count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from perflab.instruments.instrument import Instrument, Load, Observation, Sensor
from perflab.load.checks.chunk_times import OF_STREAMS, ChunkTimes, times_of_chunks
from perflab.load.checks.selfcheck import only_waits
from perflab.load.checks.trend import OF_LOAD, drifts, response_trend
from perflab.load.clients.outcome import CENSORED_CODES
from perflab.load.records.result import LoadResult
from perflab.load.records.times import NEVER, Number
from perflab.load.workload import Arrivals, ClosedLoop, OpenLoop, Scripted, Workload
from perflab.recordings import Reason
from perflab.recordings.columns import PHASE_COLUMN
from perflab.recordings.responses import (
    at_least_column,
    at_most_column,
    client_column,
    drift_column,
    lower_end_column,
)
from perflab.stacks.plan import StackPlan
from perflab.statistics import CENSORED
from perflab.statistics.quantiles import OF_TRIALS, bounds_of


class Requests(Instrument):
    """Sums up the requests of a trial.

    The columns begin with ``prefix``, but for those of phases. A column ``*_drift`` says how far a
    number moves over the load (:func:`perflab.load.checks.trend.drifts`). A queue that grows makes
    the trial of an open loop invalid, but not with a ``prefix``, as such loads only probe a service
    that another load fills. ``phases`` False leaves out what services report of their phases.
    """

    shares_time: ClassVar = True

    prefix: str = ""
    phases: bool = True

    def observe(self, load: Load) -> Observation:
        """Return the columns, and a reason where an open loop's queue grows."""
        columns = request_columns(load.result)
        columns |= throughput_ends(columns, load)
        if only_waits(load.workload, load.result):
            columns |= throughput_without(columns)
        columns |= {drift_column(name): drift for name, drift in drifts(load.result).items()}
        named = {f"{self.prefix}{name}": value for name, value in columns.items()}
        if self.phases:
            named |= phase_columns(load.result.requests)
        if self.prefix or not isinstance(load.workload.arrivals, OpenLoop):
            return Observation(named)
        trend = response_trend(load.result)
        text = f"a queue grows: {trend}; ask for a rate that the service can hold"
        reasons = [Reason(code=OF_LOAD, text=text)] if trend.is_growing_queue else []
        return Observation(named, reasons=reasons)


def request_columns(result: LoadResult) -> dict[str, Any]:
    """Return throughput, response times and CPU per request of the measured stage.

    For throughput see :attr:`LoadResult.throughput_rps`. Times are those of measured successes, in
    ms, of which up to ``_client_ms`` may be the client's own. They are NaN where requests that were
    cut off could move them (``_at_least_ms`` is then a lower bound, without the client's own time).
    Throughput of slices has a lower end where requests were under way in pauses of the service: it
    may have worked for them then. Requests that failed would have taken between no time and the
    time-out, and times have both ends. Connection wait is from *started* to *sent*.
    """
    response = result.response_times.numbers(OF_TRIALS)
    service = result.service_times.numbers(OF_TRIALS)
    wait = result.connection_waits.numbers(OF_TRIALS)
    names = ("mean", *(f"p{share}" for share in OF_TRIALS), "max")
    numbers = {f"{name}_ms": response[name] for name in names}
    numbers |= {f"service_{name}_ms": service[name] for name in ("mean", "p99")}
    return {
        "throughput_rps": result.throughput_rps,
        **_least_throughput(result),
        **time_columns(numbers),
        "connection_wait_p50_ms": wait["p50"].value,
        "connection_wait_p99_ms": wait["p99"].value,
        "client_cpu_us_per_request": result.cpu_ns / 1e3 / max(1, result.requests_counted),
    }


def _least_throughput(result: LoadResult) -> dict[str, float]:
    if not len(result.pauses):
        return {}
    least_rps = replace(result, pauses=NEVER).throughput_rps
    is_lower = least_rps < result.throughput_rps
    return {lower_end_column("throughput_rps"): least_rps} if is_lower else {}


def throughput_ends(columns: Mapping[str, float], load: Load) -> dict[str, float]:
    """Return the ends of the throughput where requests failed; nothing where none did.

    In a closed loop the users have time for more requests where some fail at once, and for fewer
    where some fail late. By Little's law the throughput would have been the number of users over
    the mean cycle in which what failed takes no time, or its time-out. A cycle is the answer and
    the time to think, and at least the pacing. In an open loop the throughput is between that of
    the successes and that of all requests.
    """
    result, arrivals = load.result, load.workload.arrivals
    errors = result.measured(lambda rows: rows["error"])
    has_failed = ~np.isin(errors, (0, *CENSORED_CODES))
    failed, rate = int(has_failed.sum()), columns["throughput_rps"]
    if not failed or not rate > 0:
        return {}
    least, most = rate, rate * len(errors) / int((errors == 0).sum())
    if not isinstance(arrivals, OpenLoop):
        took_ns = result.measured(lambda rows: rows["done_ns"] - rows["planned_ns"])
        others_ns = float(_cycles_ns(arrivals, took_ns[~has_failed]).sum())
        busy_ns = most * (others_ns + float(_cycles_ns(arrivals, took_ns[has_failed]).sum()))
        no_time, longest = _cycles_ns(arrivals, np.array([0.0, load.workload.timeout_s * 1e9]))
        least = min(rate, busy_ns / (others_ns + failed * longest))
        most = busy_ns / (others_ns + failed * no_time)
    lower_end = lower_end_column("throughput_rps")
    least = min(least, columns.get(lower_end, least))
    return {lower_end: least, at_most_column("throughput_rps"): most}


def _cycles_ns(arrivals: Arrivals, took_ns: np.ndarray) -> np.ndarray:
    """Return the times from one request of a user to its next, by how long the first took."""
    if not isinstance(arrivals, ClosedLoop):
        return took_ns
    cycles_ns: np.ndarray = took_ns + arrivals.think_time_s * 1e9
    return cycles_ns.clip(arrivals.pacing_s * 1e9)


def throughput_without(columns: Mapping[str, float]) -> dict[str, float]:
    """Return what the client kept back of the throughput of users who only wait, below 0.

    By Little's law their throughput is their number over the mean response time.
    """
    mean, client = columns["mean_ms"], columns[client_column("mean_ms")]
    if math.isnan(mean):
        # Cut-off requests took at least so long.
        mean = columns.get(at_least_column("mean_ms"), math.nan) + client
    # Something is left of a time that may be all the client's.
    without = max(mean - client, mean / 100)
    rate = columns["throughput_rps"]
    return {client_column("throughput_rps"): rate - rate * mean / without if mean else math.nan}


def time_columns(numbers: Mapping[str, Number]) -> dict[str, float]:
    """Return times, what of each may be the client's own, and the bounds of those without a value.

    The bounds are of times that cut-off requests could move. Where these, or pauses of the service,
    move a time by up to 5%, it has a value, the lower end, and the upper one in ``_at_most_ms``.
    Where requests failed, the value is of the successes, with both ends beside it.
    """
    values = {name: number.value for name, number in numbers.items()}
    values |= {client_column(name): number.client_ms for name, number in numbers.items()}
    values |= {
        at_most_column(name): number.high
        for name, number in numbers.items()
        if number.low < number.high and not math.isnan(number.value)
    }
    values |= {
        lower_end_column(name): number.low
        for name, number in numbers.items()
        if number.low < number.value
    }
    return values | {
        at_least_column(name): number.at_least
        for name, number in numbers.items()
        if not math.isnan(number.at_least)
    }


def phase_columns(requests: pd.DataFrame) -> dict[str, float]:
    """Return the median of every phase that services report, as ``phase_<name>_p50_ms``.

    The median is over the measured successes that report the phase. It is NaN where they are too
    few, or where requests that were cut off, whose phases are unknown, could move it. A phase may
    be a response like any other: the time inside a service, without the way to it.
    """
    measured = requests[requests["stage"] == "measure"]
    good = measured[measured["error"] == ""]
    unknown = np.zeros(int(measured["error"].isin(CENSORED).sum()))
    return {
        f"{str(name).removesuffix('_ms')}_p50_ms": bounds_of(
            good[name].dropna().to_numpy(float), unknown, (50,)
        )[50].value
        for name in requests.columns
        if PHASE_COLUMN.fullmatch(str(name))
    }


class Chunks(Instrument):
    """Sums up the streamed answers of a trial; their whole times are in ``Requests``."""

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Yield a problem where it is known before the load that nothing is streamed."""
        if workload.request.stream is None and not isinstance(workload.arrivals, Scripted):
            yield "chunks: no answer is streamed; give the Request stream='sse' or stream='ndjson'"

    def observe(self, load: Load) -> Observation:
        """Return the columns of the streams."""
        chunks = times_of_chunks(load.result)
        return Observation(chunk_columns(chunks) if chunks is not None else {})


def chunk_columns(chunks: ChunkTimes) -> dict[str, Any]:
    """Return the times of streams by the rules of :func:`request_columns`, and their rates."""
    times = {"first_chunk": chunks.first, "chunk_gap": chunks.gaps}
    numbers = {
        f"{what}_{name}_ms": number
        for what, measured in times.items()
        for name, number in measured.numbers(OF_STREAMS).items()
        if name != "max"
    }
    return {
        **time_columns(numbers),
        "chunks_per_s": chunks.per_s,
        "chunks_at_once_share": chunks.at_once_share,
    }


class _ServerCount(Sensor["ServerCount"]):
    def after(self) -> None:
        node, item = self.settings.node, self.settings.item
        self._counted = (
            int(self.scene.counts(node)[item])
            if node
            else self.scene.residents.count(self.scene.treatment)
        )

    def observe(self, load: Load) -> Observation:
        """Return ``server_count``, if there is one, and a reason where it disagrees."""
        if self._counted is None:
            return Observation()
        reasons = miscounted(load.result.requests, self._counted, self.settings.of_each)
        return Observation({"server_count": self._counted}, reasons=reasons)


class ServerCount(Instrument):
    """Asks a server for its count, and refuses a trial that does not agree (:func:`miscounted`).

    The count is ``item`` of what the service of ``node`` tells; without a node it is that of the
    stack's database, if the plan has one. Every successful request, of the warm-up too, must have
    left ``of_each`` counted items, and there may be no more than for every request that was sent.
    """

    at_work: ClassVar = _ServerCount

    node: str = ""
    item: str = ""
    of_each: int = Field(default=1, ge=1)


def miscounted(requests: pd.DataFrame, counted: int, of_each: int = 1) -> list[Reason]:
    """Return a reason where a server's own count contradicts the requests.

    The server must have counted ``of_each`` for every success, and no more than for every request
    that was sent; it may have counted one that timed out.
    """
    answered = of_each * int((requests["error"] == "").sum())
    sent = of_each * int((requests["sent_ns"] > 0).sum())
    text = (
        f"the server counted {counted}, but the client sent {sent} at most, and {answered} of them "
        "were answered"
    )
    return [] if answered <= counted <= sent else [Reason(code="server.count", text=text)]


def success_share(result: LoadResult, without: Sequence[int] = ()) -> float:
    """Return successes over planned requests of the measured stage; NaN if none was planned.

    Requests with the codes of errors ``without`` are left out.
    """
    errors = result.measured(lambda rows: rows["error"])
    errors = errors[~np.isin(errors, without)]
    planned = len(errors) + result.unsent
    return float((errors == 0).sum()) / planned if planned else math.nan
