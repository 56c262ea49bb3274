"""The generator judges itself: reasons why a load's numbers may not be used.

A reason makes the trial invalid and says whose fault it is; a warning travels with its numbers.
What other programs do to all treatments alike, such as stolen time, is a warning: the random order
and the blocks deal with it.

A late client adds to the times that it reports; how much it may have added stands beside each
(:mod:`perflab.load.records.times`), and more than a tenth is marked. It makes a load invalid only
where requests follow a plan: those that it kept back arrive together, and the service has another
load than asked for. Users who wait for nothing but answers load the service alike whether the
client was late or not; they only get fewer answers in a second. They are refused where the client
is late most of the time: then its own work takes longer, too, and no share of that is known.

Lancet (M. Kogias, S. Mallon, E. Bugnion, USENIX ATC 2019) accepts a sample when arrivals have the
wanted distribution, the process is stationary and samples are independent enough. Here:

- Arrivals: no request starts early, so a queue at the service differs by less than the lag from
  that of the planned arrivals. The lag is part of what the client may have added.
- Stationarity: a load whose response times change by more than a tenth is marked
  (:mod:`perflab.load.checks.trend`). A comparison says whether it also holds at the end of the
  load (:mod:`perflab.analysis.scope`).
- Independence: samples within a trial need not be independent, for intervals come from trials
  (:mod:`perflab.statistics.quantiles`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from perflab.load.checks import failure_reasons, failures, load_remarks, stalls
from perflab.load.checks.trend import response_trend
from perflab.load.records.columns import INSTANTS
from perflab.load.records.loop_probe import TICK_MS
from perflab.load.records.result import LoadResult
from perflab.load.records.times import Times
from perflab.load.workload.arrivals import ClosedLoop
from perflab.load.workload.windows import time_before
from perflab.load.workload.workload import Workload
from perflab.recordings.responses import CLIENT_LATE, MAX_CLIENT_SHARE
from perflab.recordings.schema import Reason, Remark
from perflab.statistics.in_words import as_share
from perflab.statistics.quantiles import OF_TRIALS, percentiles_of

# Below these, what the client may have added to a number is marked, and refuses nothing.
LEAST_LATE_MS = {"mean": 0.2, "p50": 0.2}
LEAST_LATE_TAIL_MS = 1.0
MAX_CLIENT_CPU = 0.85
MAX_BUSY_DELAY_P50_MS = 1.0
MAX_CLOCK_STEP_MS = 5.0
# The record does not show users who leave a moment before the last request is planned.
MAX_OFF = 0.03
# Failures without an answer, at which a client asks again as fast as it can.
REFUSALS = ("connect", "reset", "closed", "dns", "tls", "handshake")
MOSTLY = 0.5


@dataclass(frozen=True)
class SelfCheck:
    """The generator's judgement of itself; empty ``reasons`` means valid.

    Delays of the event loop are those while the load was busy (see
    :mod:`perflab.load.checks.stalls`), over all ticks, those missed in a stall included.
    ``censored`` counts the measured requests that were cut off before their end.
    """

    run_delay_share: float
    generator_lag_p50_ms: float
    generator_lag_p99_ms: float
    loop_delay_p50_ms: float
    loop_delay_p99_ms: float
    loop_delay_max_ms: float
    client_cpu_share: float
    client_cpu_us_per_request: float
    littles_law_ratio: float
    censored: int
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Remark, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the numbers may be used."""
        return not self.reasons


def check(result: LoadResult, workload: Workload) -> SelfCheck:
    """Judge a load by its workload."""
    lag_ns = result.measured(lambda rows: rows["started_ns"] - rows["planned_ns"])
    streamed = result.messages
    if len(streamed):
        # For users of streams, sent messages count for lateness and received ones for times.
        lag_ns = np.concatenate([lag_ns, _sent_late_ns(streamed)])
    lags_ns = percentiles_of(lag_ns, (50, 99))
    causes = failures.causes(result)
    refused = sum(cause.count for cause in causes if cause.error in REFUSALS)
    wall_ns = max(1, result.counted_ns)
    wakeups_ms, ticks_ms = stalls.delays(result, workload)
    ticks_of = percentiles_of(ticks_ms, (50, 99))
    response = result.response_times
    judged = stalls.received(result) if len(streamed) else response
    short_ms = wakeups_ms[wakeups_ms < TICK_MS]
    judged = replace(judged if len(judged.known) else response, short_ms=short_ms)
    judgement = SelfCheck(
        run_delay_share=result.run_delay_share,
        generator_lag_p50_ms=lags_ns[50] / 1e6,
        generator_lag_p99_ms=lags_ns[99] / 1e6,
        loop_delay_p50_ms=ticks_of[50],
        loop_delay_p99_ms=ticks_of[99],
        loop_delay_max_ms=float(ticks_ms.max()),
        client_cpu_share=result.cpu_ns / wall_ns / result.cores,
        client_cpu_us_per_request=result.cpu_ns / 1e3 / max(1, result.requests_counted),
        littles_law_ratio=littles_law_ratio(result, workload),
        censored=len(response.elapsed),
    )
    reasons = [*failure_reasons.reasons(result, workload, causes), *_record_reasons(result)]
    # A client whose requests are refused is busy with sending again: that is not its fault.
    if refused <= MOSTLY * result.requests_measured:
        if only_waits(workload, result):
            reasons += _queue_reasons(judgement, judged)
        else:
            reasons += _late_reasons(judged)
        reasons += _cpu_reasons(judgement, isinstance(workload.arrivals, ClosedLoop))
        reasons += _law_reasons(judgement.littles_law_ratio)
    warnings = (
        *failure_reasons.remarks(result, workload, causes),
        *load_remarks.of_load(result, workload),
        *load_remarks.of_numbers(response, response_trend(result)),
        *(failure_reasons.on_kept_connections(result, workload) if causes else ()),
    )
    return replace(judgement, reasons=tuple(reasons), warnings=warnings)


def only_waits(workload: Workload, result: LoadResult) -> bool:
    """Return whether users begin each request at the answer to the last, and at no planned time."""
    arrivals = workload.arrivals
    planned = not isinstance(arrivals, ClosedLoop) or arrivals.pacing_s or arrivals.think_time_s
    return not (planned or result.at_once)


def _sent_late_ns(messages: pd.DataFrame) -> np.ndarray:
    """Return the times from planned instant to sending of messages that have a kind and a key."""
    chosen = messages[(messages["direction"] == "sent") & (messages["key"] > 0)]
    chosen = chosen[chosen["kind"] != ""]
    times_ns: np.ndarray = (chosen["at_ns"] - chosen["key"]).to_numpy()
    return times_ns


def _late_reasons(times: Times) -> list[Reason]:
    """Return a reason where the client may have added more than a tenth to a number."""
    late = [
        f"up to {number.client_ms:.2f} ms of {name} {number.low:.2f} ms may be its own"
        for name, number in times.numbers(OF_TRIALS).items()
        if name != "max"
        and number.is_the_clients
        and number.client_ms > LEAST_LATE_MS.get(name, LEAST_LATE_TAIL_MS)
    ]
    if not late:
        return []
    text = f"the client was late: {late[-1]}, and requests that it kept back arrive together"
    return [Reason(code=CLIENT_LATE, side="client", text=text)]


def _queue_reasons(judgement: SelfCheck, times: Times) -> list[Reason]:
    """Return a reason where half of a client's wakeups are late: its own work is slow as well."""
    delay_ms = judgement.loop_delay_p50_ms
    median = times.numbers((50,))["p50"].low
    if not delay_ms > np.nanmax([LEAST_LATE_MS["p50"], MAX_CLIENT_SHARE * median]):
        return []
    text = f"the client's event loop was {delay_ms:.2f} ms late at the median: the client may be "
    return [Reason(code="generator.queue", side="client", text=f"{text}the limit")]


def _cpu_reasons(judgement: SelfCheck, closed: bool) -> list[Reason]:
    """Judge the client's use of its cores.

    A closed loop slows down with its client, unseen. The client of an open loop that keeps its
    schedule may be busy, unless work queues in its event loop: then it reports its own queue.
    """
    queues = judgement.loop_delay_p50_ms > MAX_BUSY_DELAY_P50_MS
    if not (judgement.client_cpu_share > MAX_CLIENT_CPU and (closed or queues)):
        return []
    share = as_share(judgement.client_cpu_share)
    text = f"the client used {share} of its cores: the client may be the limit"
    return [Reason(code="generator.cpu", side="client", text=text)]


def _record_reasons(result: LoadResult) -> list[Reason]:
    """Check the record itself: instants in their order, clocks that ran evenly."""

    def disorder(rows: np.ndarray) -> np.ndarray:
        pairs = pairwise(INSTANTS)
        wrong: np.ndarray = np.array([rows[after] < rows[before] for before, after in pairs])
        wrong &= rows["error"] == 0
        return wrong

    reasons = []
    if wrong := result.count(disorder):
        text = f"{wrong} instants of requests are out of order: the record is not true"
        reasons.append(Reason(code="generator.instants", side="client", text=text))
    if abs(result.clock_step_ms) > MAX_CLOCK_STEP_MS:
        text = "the machine slept or its clock was set during the load: real time moved"
        text += f" {result.clock_step_ms:+.1f} ms against monotonic time"
        reasons.append(Reason(code="host.clock_step", text=text))
    return reasons


def littles_law_ratio(result: LoadResult, workload: Workload) -> float:
    """Return throughput times (mean response time + think time) over the number of users.

    Between the first and the last measured start (or in the counted parts of windows) all users are
    active, so the ratio must be 1. It is NaN where users do more than wait and think (open loops,
    pacing, users still joining or with one request each).

    The product is computed as the mean number of users at work, from the part of each request's
    time that lies between these two instants, so that requests that cross the edges count right.
    Source: J. D. C. Little, Operations Research 9(3), 1961.
    """
    arrivals = workload.arrivals
    begin_ns, end_ns = result.begin_ns, result.end_ns
    if not isinstance(arrivals, ClosedLoop) or arrivals.pacing_s or end_ns <= begin_ns:
        return float("nan")
    if result.at_once or arrivals.ramp_s > arrivals.warmup_s:
        return float("nan")
    think_ns = round(arrivals.think_time_s * 1e9)
    busy_ns, spans = 0, result.counted
    for rows in result.chunks():
        ended_ns = rows["done_ns"] + think_ns
        busy_ns += int(
            (time_before(ended_ns, spans) - time_before(rows["planned_ns"], spans)).sum()
        )
    return busy_ns / result.counted_ns / arrivals.users


def _law_reasons(ratio: float) -> list[Reason]:
    """Return a reason if Little's law does not hold."""
    if not abs(ratio - 1) > MAX_OFF:
        return []
    text = f"Little's law does not hold: the ratio is {ratio:.2f}, not 1"
    return [Reason(code="generator.littles_law", side="client", text=text)]
