"""How numbers move over a load: from its begin to its end, by a robust line through its windows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from perflab.load.records.columns import ROW
from perflab.load.records.result import LoadResult
from perflab.load.workload.windows import time_before

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
