"""Latency of a queue against its load: r = s / (1 - (u / c)^k), fitted on logs.

At k = 1 it is the M/M/1 queue of capacity c; with k servers about that of M/M/k (the approximation
of D. Menascé, V. Almeida, Capacity Planning for Web Services, 2002, and N. J. Gunther, The
Practical Performance Analyst, 1998). It has no sharp knee; the load at which latency is twice that
of an idle server says where the queue begins to matter. Its interval is the delete-one-cluster
jackknife's (J. W. Tukey, Ann. Math. Stat. 29, 1958).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from perflab.analysis.methods.clustering import Clusters

SMALLEST_ROOM = 1e-3


@dataclass(frozen=True)
class QueueCurve:
    """The fitted curve; ``doubled`` is the x where latency is twice the idle one.

    ``low`` and ``high`` are NaN where the jackknife fails. ``capacity`` is c, ``shape`` k.
    """

    capacity: float
    shape: float
    doubled: float
    low: float
    high: float
    squares: float


def queueing_curve(
    x: np.ndarray, y: np.ndarray, own: Clusters, confidence: float
) -> QueueCurve | None:
    """Fit log latencies y against x >= 0, shape (windows,); None where there is no such curve."""
    top = float(x.max())
    if not top > 0 or (x < 0).any():
        return None
    level = own.centred(y[:, None])[:, 0]
    everything = np.ones(len(x))
    found = _fit(x, level, own, everything, top, np.array([math.log(0.2), 0.5]))
    if found is None:
        return None
    place = math.log(_doubled(found, top))
    low, high = _jackknife(x, y, own, top, found, place, confidence)
    rest = _rest(found, x, level, own, everything, top)
    capacity, shape = _natural(found, top)
    return QueueCurve(capacity, shape, math.exp(place), low, high, float(rest @ rest))


def curve(x: np.ndarray, capacity: float, shape: float) -> np.ndarray:
    """Return log latency over that of an idle server, shape of x; infinite from capacity on."""
    room = 1 - (np.maximum(x, 0.0) / capacity) ** shape
    logs: np.ndarray = -np.log(np.maximum(room, SMALLEST_ROOM * 1e-3))
    return logs


def _natural(parameters: np.ndarray, top: float) -> tuple[float, float]:
    room, shape = np.exp(np.clip(parameters, (-6.9, -3.0), (5.0, 4.0)))
    return top * (1 + float(room)), float(shape)


def _doubled(parameters: np.ndarray, top: float) -> float:
    capacity, shape = _natural(parameters, top)
    return float(capacity * 0.5 ** (1 / shape))


def _rest(
    parameters: np.ndarray, x: np.ndarray, level: np.ndarray, own: Clusters, kept: np.ndarray,
    top: float,
) -> np.ndarray:  # fmt: skip
    fitted = curve(x, *_natural(parameters, top))
    off = level - own.centred(fitted[:, None])[:, 0]
    # Without a cluster the levels differ a little: centre what is left.
    rest: np.ndarray = kept * (off - (kept @ off) / kept.sum())
    return rest


def _fit(
    x: np.ndarray, level: np.ndarray, own: Clusters, kept: np.ndarray, top: float, begin: np.ndarray
) -> np.ndarray | None:
    try:
        found = optimize.least_squares(
            _rest, begin, args=(x, level, own, kept, top), method="lm", max_nfev=60
        )
    except ValueError:
        return None
    parameters: np.ndarray = found.x
    return parameters if np.isfinite(parameters).all() else None


def _jackknife(
    x: np.ndarray, y: np.ndarray, own: Clusters, top: float, found: np.ndarray, place: float,
    confidence: float,
) -> tuple[float, float]:  # fmt: skip
    level = own.centred(y[:, None])[:, 0]
    places = []
    for left_out in range(own.count):
        fitted = _fit(x, level, own, (own.cluster != left_out) * 1.0, top, found)
        if fitted is None:
            return math.nan, math.nan
        places.append(math.log(_doubled(fitted, top)))
    n = own.count
    error = math.sqrt((n - 1) / n * float(((np.array(places) - np.mean(places)) ** 2).sum()))
    margin = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    return math.exp(place - min(margin, 50.0)), math.exp(place + min(margin, 50.0))
