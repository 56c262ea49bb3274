"""Whether response times rise or fall over a load: then no number stands for all of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perflab.load.result import LoadResult
from perflab.load.windows import time_before
from perflab.recordings.steadiness import GROSS_TREND, MAX_TREND

WINDOWS = 10
TAU = 0.6
SMALLEST_N = 5 * WINDOWS
EARLIER, LATER = np.triu_indices(WINDOWS, 1)


@dataclass(frozen=True)
class Trend:
    """How response times change over a load.

    ``log`` is the log ratio of its end to its begin, whatever is seen (NaN: too few requests to
    say). ``clear`` says whether that is a trend and not chance; ``ms_per_s`` is 0 where it is not.
    """

    ms_per_s: float = 0.0
    log: float = math.nan
    clear: bool = False

    @property
    def too_large(self) -> bool:
        """Whether the load had no response time of its own: one twice as long has another."""
        return self.clear and abs(self.log) > MAX_TREND

    @property
    def gross(self) -> bool:
        """Whether it is too large for any trial, whatever those of other blocks did."""
        return self.clear and abs(self.log) > GROSS_TREND

    def __str__(self) -> str:
        return f"response times changed by {math.expm1(self.log):+.0%} from its begin to its end"


def trend_of(planned_ns: np.ndarray, response_ns: np.ndarray) -> Trend:
    """Return how response times change over a load.

    Theil-Sen slopes of the medians of ten equal windows of planned time, in ms and of their logs;
    clear if Kendall's tau between window and median is at least 0.6 either way (p < 0.02 for ten
    windows). A queue that grows without bound shows itself so long before it misses an objective.
    Sources: P. K. Sen, JASA 63(324), 1968; M. G. Kendall, Biometrika 30, 1938.
    """
    if len(planned_ns) < SMALLEST_N:
        return Trend()
    begin_ns, end_ns = int(planned_ns.min()), int(planned_ns.max())
    window = (planned_ns - begin_ns) * WINDOWS // max(1, end_ns + 1 - begin_ns)
    if len(np.unique(window)) < WINDOWS:
        return Trend()
    own = [response_ns[window == number] for number in range(WINDOWS)]
    middles = np.array([np.median(each) for each in own]) / 1e6
    width_s = (end_ns - begin_ns) / WINDOWS / 1e9
    log = float(log_trend(np.log(middles))) if middles.min() > 0 else math.nan
    if not is_clear(middles) or not width_s:
        return Trend(log=log)
    return Trend(float(_theil_sen(middles)) / width_s, log, clear=True)


def log_trend(log_middles: np.ndarray) -> np.ndarray:
    """Return the change from the first to the last of the windows along the last axis."""
    return _theil_sen(log_middles) * (WINDOWS - 1)


def _theil_sen(middles: np.ndarray) -> np.ndarray:
    """Return the median slope per window, along the last axis."""
    slopes = (middles[..., LATER] - middles[..., EARLIER]) / (LATER - EARLIER)
    middle: np.ndarray = np.median(slopes, axis=-1)
    return middle


def is_clear(middles: np.ndarray) -> np.ndarray:
    """Say whether windows and medians go together along the last axis, by Kendall's tau-b.

    No two windows have the same time, but some may have the same median.
    """
    rises = middles[..., LATER] - middles[..., EARLIER]
    changed = np.count_nonzero(rises, axis=-1)
    agreed = np.abs(np.sign(rises).sum(axis=-1))
    clear: np.ndarray = (changed > 0) & (agreed >= TAU * np.sqrt(len(LATER) * changed))
    return clear


def response_trend(result: LoadResult) -> Trend:
    """Return the trend of the measured successes of a load, without each user's last request.

    The last ones of a closed loop meet a crowd that is leaving: they are faster, whatever the load.
    """
    kept = [_but_the_last(rows[rows["error"] == 0]) for _, rows in result.measured_by_worker()]
    good = np.concatenate(kept) if kept else result.measured(lambda rows: rows)
    planned_ns = good["planned_ns"]
    if result.windows is not None:
        # By the time that was measured: else a tenth of the load could hold no window.
        planned_ns = time_before(planned_ns, result.counted)
    return trend_of(planned_ns, good["done_ns"] - good["planned_ns"])


def _but_the_last(rows: np.ndarray) -> np.ndarray:
    latest_first = rows[np.argsort(rows["planned_ns"], kind="stable")[::-1]]
    _, lasts = np.unique(latest_first["user"], return_index=True)
    return np.delete(latest_first, lasts)
