"""How numbers move over a load, what the machine counted meanwhile, and remarks on both."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from perflab.host.kernel_counts import tcp_counts
from perflab.host.meters import core_times
from perflab.host.shortages import few_files
from perflab.load.checks.times import Number, Times
from perflab.load.clients.client import DEFAULT_CONNECTIONS, SPARE_FILES
from perflab.load.clients.outcome import CODES
from perflab.load.records.columns import ROW
from perflab.load.records.result import LoadResult
from perflab.load.workload.windows import time_before
from perflab.recordings.columns import TCP_COUNTERS
from perflab.recordings.schema import Remark
from perflab.statistics.in_words import as_share, to_safe_side

# The first retransmission of a SYN comes after 1 s (RFC 6298, section 2); the kernel's timer may be
# one tick early, which is at most 10 ms.
FIRST_RETRANSMISSION_NS = 980_000_000


@dataclass(frozen=True)
class MachineCounts:
    """The counters at one instant.

    ``steal_ns`` is the time that other guests of the machine took from the client's cores.
    """

    cores: tuple[int, ...]
    at_ns: int
    steal_ns: int
    kernel: Mapping[str, int]

    @classmethod
    def now(cls, cores: tuple[int, ...]) -> MachineCounts:
        """Read the counters."""
        times = core_times()
        stolen_ns = sum(times[core].steal_ns for core in set(cores) if core in times)
        return cls(cores, time.monotonic_ns(), stolen_ns, tcp_counts())

    def until(self, later: MachineCounts) -> tuple[float, dict[str, int]]:
        """Return the stolen share of the cores' time, and the kernel's TCP counts by column."""
        wall_ns = (later.at_ns - self.at_ns) * len(set(self.cores))
        known = self.kernel.keys() & later.kernel.keys()
        counts = {name: later.kernel[name] - self.kernel[name] for name in sorted(known)}
        return (later.steal_ns - self.steal_ns) / max(1, wall_ns), counts


def remarks_on_tcp(result: LoadResult) -> list[Remark]:
    """Return a remark on the kernel's TCP counts during a load, if there are any."""
    counts = [
        f"{result.kernel[name]} {words}"
        for name, words in TCP_COUNTERS.items()
        if result.kernel.get(name)
    ]
    if not counts:
        return []
    waited = sum(
        int((rows["connect_ns"] >= FIRST_RETRANSMISSION_NS).sum()) for rows in result.chunks()
    )
    text = (
        f"the kernel counted {', '.join(counts)} during the load, for the whole network namespace; "
        f"{waited} connections of this load waited 1 s or longer, until their SYN was sent again"
    )
    return [Remark(code="host.tcp", text=text)]


# Log ratios of a load's end to its begin: from the first on a clear trend is told, from the second
# on it refuses an open loop, whose queue then grows for as long as the load lasts.
MAX_TREND = math.log(1.1)
GROSS_TREND = math.log(1.5)
OF_LOAD = "load.trend"
CLIENT_TIME = "generator.client_time"
WINDOWS = 10
TAU = 0.6
FEWEST_REQUESTS = 5 * WINDOWS
EARLIER, LATER = np.triu_indices(WINDOWS, 1)
DRIFTING = ("throughput_rps", "mean_ms", "p50_ms")


@dataclass(frozen=True)
class Trend:
    """How response times change over a load.

    ``log`` is the log ratio of its end to its begin (NaN: too few requests). ``clear`` says whether
    that is a trend and not chance; ``ms_per_s`` is 0 where it is chance.
    """

    ms_per_s: float = 0.0
    log: float = math.nan
    clear: bool = False

    @property
    def too_large(self) -> bool:
        """Whether the trend is too large for one response time: a longer load has another."""
        return self.clear and abs(self.log) > MAX_TREND

    @property
    def is_growing_queue(self) -> bool:
        """Whether response times rise so much that an open loop's queue grows without bound."""
        return self.clear and self.log > GROSS_TREND

    def __str__(self) -> str:
        change = f"{math.expm1(self.log):+.0%}"
        return f"response times changed by {change} from the load's begin to its end"


def trend_of(planned_ns: np.ndarray, response_ns: np.ndarray) -> Trend:
    """Return how response times change over a load.

    The slopes are Theil-Sen slopes of the medians of ten equal windows of planned time, in ms and
    of their logs. The trend is clear if Kendall's tau between window and median is at least 0.6
    either way (p < 0.02 for ten windows). This shows a queue that grows without bound long before
    the load misses an objective.
    Sources: P. K. Sen, JASA 63(324), 1968; M. G. Kendall, Biometrika 30, 1938.
    """
    if len(planned_ns) < FEWEST_REQUESTS:
        return Trend()
    begin_ns, end_ns = int(planned_ns.min()), int(planned_ns.max())
    window = (planned_ns - begin_ns) * WINDOWS // max(1, end_ns + 1 - begin_ns)
    if len(np.unique(window)) < WINDOWS:
        return Trend()
    medians_ns = [np.median(response_ns[window == number]) for number in range(WINDOWS)]
    middles = np.array(medians_ns) / 1e6
    width_s = (end_ns - begin_ns) / WINDOWS / 1e9
    log = _theil_sen(np.log(middles)) * (WINDOWS - 1) if middles.min() > 0 else math.nan
    if not is_clear(middles) or not width_s:
        return Trend(log=log)
    return Trend(_theil_sen(middles) / width_s, log, clear=True)


def _theil_sen(middles: np.ndarray) -> float:
    """Return the median slope per window."""
    return float(np.median((middles[LATER] - middles[EARLIER]) / (LATER - EARLIER)))


def is_clear(middles: np.ndarray) -> bool:
    """Return whether medians rise or fall with their windows (Kendall's tau-b).

    Two windows never have the same time, but may have the same median.
    """
    rises = middles[LATER] - middles[EARLIER]
    changed = int(np.count_nonzero(rises))
    agreed = abs(float(np.sign(rises).sum()))
    return changed > 0 and agreed >= TAU * math.sqrt(len(LATER) * changed)


def response_trend(result: LoadResult) -> Trend:
    """Return the trend of the measured successes of a load, without each user's last request.

    At the end of a closed loop other users have left: the last requests are faster in any load.
    """
    pieces = [_but_the_last(rows[rows["error"] == 0]) for _, rows in result.measured_by_worker()]
    successes = np.concatenate(pieces) if pieces else result.measured(lambda rows: rows)
    planned_ns = successes["planned_ns"]
    if result.windows is not None:
        # Only measured time counts: otherwise a tenth of the load could hold no window.
        planned_ns = time_before(planned_ns, result.counted)
    return trend_of(planned_ns, successes["done_ns"] - successes["planned_ns"])


def drifts(result: LoadResult) -> dict[str, float]:
    """Return how far numbers of a load move from the whole load to its end, as log ratios.

    The numbers are ``throughput_rps``, ``mean_ms`` and ``p50_ms``. A drift is the least-squares
    slope of the logs of a number in ten equal windows of measured time, times the 4.5 windows from
    the middle of the load to the middle of its last window. The drift of a ratio is the difference
    of two drifts. It is NaN where there are fewer than 50 requests, or a window has none.
    """
    successes = [rows[rows["error"] == 0] for _, rows in result.measured_by_worker()]
    counts = np.bincount(_window_of(result, _inside(result, successes)), minlength=WINDOWS)
    rows = _inside(result, map(_but_the_last, successes))
    window = _window_of(result, rows)
    if counts.sum() < FEWEST_REQUESTS or len(np.unique(window)) < WINDOWS:
        return dict.fromkeys(DRIFTING, math.nan)
    response_ns = rows["done_ns"] - rows["planned_ns"]
    groups = [response_ns[window == number] for number in range(WINDOWS)]
    means = [group.mean() for group in groups]
    medians = [np.median(group) for group in groups]
    logs = np.log(np.array([counts, means, medians], dtype=float))
    return {name: to_its_end(row) for name, row in zip(DRIFTING, logs, strict=True)}


def _inside(result: LoadResult, pieces: Iterable[np.ndarray]) -> np.ndarray:
    """Return the rows that were planned within the measured time."""
    rows = np.concatenate([np.empty(0, dtype=ROW), *pieces])
    planned_ns = rows["planned_ns"]
    return rows[(planned_ns >= result.begin_ns) & (planned_ns < result.end_ns)]


def _window_of(result: LoadResult, rows: np.ndarray) -> np.ndarray:
    """Return in which of the equal windows of measured time, from 0 on, rows were planned."""
    measured_ns = time_before(rows["planned_ns"], result.counted)
    windows: np.ndarray = measured_ns * WINDOWS // max(1, result.counted_ns)
    return windows.clip(max=WINDOWS - 1)


def to_its_end(log_values: np.ndarray) -> float:
    """Return the change of ten windows' logs from their middle to the last one; NaN if unknown."""
    from_middle = np.arange(WINDOWS) - (WINDOWS - 1) / 2
    slope = float((from_middle * log_values).sum() / (from_middle**2).sum())
    return float(slope * from_middle[-1])


def _but_the_last(rows: np.ndarray) -> np.ndarray:
    latest_first = rows[np.argsort(rows["planned_ns"], kind="stable")[::-1]]
    _, lasts = np.unique(latest_first["user"], return_index=True)
    return np.delete(latest_first, lasts)


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


def of_load(result: LoadResult) -> list[Remark]:
    """Return the remarks on a load that are not about its times."""
    texts = {}
    if result.stopped:
        text = f"the load was ended early: {result.stopped}"
        if result.failure_stop is not None:
            text += "; times and throughput cover the requests that ended before"
        texts["load.stopped"] = text
    if result.capped:
        text = f"{result.capped} requests waited for a free connection, or over HTTP/2 until the"
        few = few_files(DEFAULT_CONNECTIONS + SPARE_FILES)
        text += " server took more at a time; see connection wait"
        texts["load.capped"] = "; ".join(filter(None, [text, few]))
    if result.resent:
        text = f"{result.resent} requests were sent again: the server ended their connection, or"
        texts["load.resent"] = f"{text} refused them, before it began them"
    texts |= _of_sockets(result.sockets)
    aborted = sum(int((rows["error"] == CODES["aborted"]).sum()) for rows in result.chunks())
    if aborted:
        text = f"{aborted} requests were still under way at the end and given up"
        texts["load.aborted"] = text
    unsent = sum(int((rows["error"] == CODES["unsent"]).sum()) for rows in result.chunks())
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
