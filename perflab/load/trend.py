"""Whether response times rise or fall over a load: then no number stands for all of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflab.load.result import LoadResult

WINDOWS = 10
TAU = 0.6
SMALLEST_N = 5 * WINDOWS
# By how much of the median a trend may change response times over the whole load.
MAX_TREND_SHARE = 0.10


@dataclass(frozen=True)
class Trend:
    """``ms_per_s`` is 0 without a clear trend; ``share`` is what it makes of the median."""

    ms_per_s: float = 0.0
    share: float = 0.0

    @property
    def too_large(self) -> bool:
        """Whether the load had no response time of its own: one twice as long has another."""
        return abs(self.share) > MAX_TREND_SHARE

    def __str__(self) -> str:
        return f"response times changed by {self.share:+.0%} from its begin to its end"


def trend_of(planned_ns: np.ndarray, response_ns: np.ndarray) -> Trend:
    """Return how response times change over a load.

    Theil-Sen slope of the medians of ten equal windows of planned time, if Kendall's tau between
    window and median is at least 0.6 either way (p < 0.02 for ten windows). A queue that grows
    without bound shows itself so long before it misses an objective. Sources: P. K. Sen, JASA
    63(324), 1968; M. G. Kendall, Biometrika 30, 1938.
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
    earlier, later = np.triu_indices(WINDOWS, 1)
    rises = middles[later] - middles[earlier]
    # Kendall's tau-b: no two windows have the same time, but some may have the same median.
    if abs(np.sign(rises).sum()) < TAU * np.sqrt(len(rises) * np.count_nonzero(rises)):
        return Trend()
    per_window = float(np.median(rises / (later - earlier)))
    typical = float(np.median(middles))
    share = per_window * (WINDOWS - 1) / typical if typical else 0.0
    return Trend(per_window / width_s if width_s else 0.0, share)


def response_trend(result: LoadResult) -> Trend:
    """Return the trend of the measured successes of a load, without each user's last request.

    The last ones of a closed loop meet a crowd that is leaving: they are faster, whatever the load.
    """
    kept = [_but_the_last(rows[rows["error"] == 0]) for _, rows in result.measured_by_worker()]
    good = np.concatenate(kept) if kept else result.measured(lambda rows: rows)
    return trend_of(good["planned_ns"], good["done_ns"] - good["planned_ns"])


def _but_the_last(rows: np.ndarray) -> np.ndarray:
    latest_first = rows[np.argsort(rows["planned_ns"], kind="stable")[::-1]]
    _, lasts = np.unique(latest_first["user"], return_index=True)
    return np.delete(latest_first, lasts)
