"""The rank correlation of latency and CPU over windows of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.polynomial import Polynomial

from perflab.statistics.quantiles import t_interval

SMALLEST_WINDOWS = 8
# A rank correlation of 1 over few windows is not a perfect one: keep Fisher's z finite.
LARGEST_RHO = 0.995
TREND_DEGREE = 3
NO_RANK = 1e-6


@dataclass(frozen=True)
class Correlation:
    """A rank correlation within trials, averaged over trials, with its interval.

    ``n`` is the number of trials, the unit, and ``windows`` the number of their windows. ``rho`` is
    NaN without a trial, the 95% interval with fewer than 2. ``apart`` is the correlation, with its
    interval, of what is left without the trend of each trial: both columns may drift together, and
    have nothing else in common.
    """

    rho: float
    low: float
    high: float
    n: int
    windows: int
    apart: tuple[float, float, float]


def windows(
    requests: pd.DataFrame, samples: pd.DataFrame, services: Sequence[str], width_s: float
) -> pd.DataFrame:
    """Cut every trial's measured stage into windows.

    A request belongs to the window in which it was done. Only whole windows and successes count.
    CPU time is interpolated between samples, so ``width_s`` should hold at least two of them.

    Columns: trial_id, treatment, p50_ms (of response times, NaN in a window without an answer), and
    ``cpu_<service>`` for each of ``services`` (1.0 = one core; NaN for a service that was not
    sampled).
    """
    columns = ["trial_id", "treatment", "p50_ms", *(f"cpu_{service}" for service in services)]
    good = requests[(requests["error"] == "") & (requests["done_ns"] > 0)]
    parts = [
        _windows_of_trial(
            rows, samples[samples["trial_id"] == trial], services, round(width_s * 1e9)
        )
        for trial, rows in good.groupby("trial_id", sort=True)
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _windows_of_trial(
    requests: pd.DataFrame, samples: pd.DataFrame, services: Sequence[str], width_ns: int
) -> pd.DataFrame:
    begin, end = int(requests["planned_ns"].min()), int(requests["done_ns"].max())
    edges = begin + width_ns * np.arange((end - begin) // width_ns + 1)
    place = ((requests["done_ns"] - begin) // width_ns).astype("int64").rename("window")
    response_ms = ((requests["done_ns"] - requests["planned_ns"]) / 1e6).groupby(place)
    medians = response_ms.median().reindex(pd.RangeIndex(len(edges) - 1))
    of_trial = {name: requests[name].iloc[0] for name in ("trial_id", "treatment")}
    shares = {
        f"cpu_{service}": cpu_shares(samples[samples["service"] == service], edges)
        for service in services
    }
    return pd.DataFrame({**of_trial, "p50_ms": medians, **shares})


def cpu_shares(samples: pd.DataFrame, edges: np.ndarray) -> np.ndarray:
    """Return CPU time over wall time between neighbouring edges; NaN beyond the samples."""
    if len(samples) < 2:
        return np.full(len(edges) - 1, np.nan)
    ordered = samples.sort_values("t_ns")
    used = np.interp(
        edges, ordered["t_ns"].to_numpy(), ordered["cpu_ns"].to_numpy(), left=np.nan, right=np.nan
    )
    shares: np.ndarray = np.diff(used) / np.diff(edges)
    return shares


def correlate(table: pd.DataFrame, x: str, y: str = "p50_ms") -> Correlation:
    """Return Spearman's correlation of two columns of :func:`windows`, within trials.

    Windows of one trial are autocorrelated and treatments differ in both columns, so the trial is
    the unit: the function averages one rank correlation per trial through Fisher's z, with a t
    interval over trials. Pooling all windows would take their number for n and mix in the
    difference between treatments. Trials with fewer than 8 windows, or with a constant column, are
    left out. The trend of a trial is a cubic of time through the ranks of each column.

    Sources: C. Spearman, Am. J. Psychol. 15, 1904; averaging through z: N. C. Silver, W. P. Dunlap,
    J. Appl. Psychol. 72, 1987.
    """
    from scipy import stats

    trials = [
        rows
        for _, rows in table[["trial_id", x, y]].dropna().groupby("trial_id", sort=False)
        if len(rows) >= SMALLEST_WINDOWS and rows[x].nunique() > 1 and rows[y].nunique() > 1
    ]
    ranks = [np.array([stats.rankdata(rows[name]) for name in (x, y)]) for rows in trials]
    whole = _averaged([np.corrcoef(each)[0, 1] for each in ranks])
    apart = _averaged([_rho_apart(each) for each in ranks])
    return Correlation(*whole, len(ranks), sum(map(len, trials)), apart)


def _rho_apart(ranks: np.ndarray) -> float:
    """Return the correlation of what a cubic of time leaves of two rows of ranks."""
    time = np.linspace(-1, 1, ranks.shape[1])
    left = np.array([row - Polynomial.fit(time, row, TREND_DEGREE)(time) for row in ranks])
    # What is all trend has nothing left that could be common.
    return float(np.corrcoef(left)[0, 1]) if left.std(axis=1).min() > NO_RANK else 0.0


def _averaged(rhos: Sequence[float]) -> tuple[float, float, float]:
    """Return the average of correlations through Fisher's z, with its 95% interval."""
    z = np.arctanh(np.clip(rhos, -LARGEST_RHO, LARGEST_RHO))
    low, high = map(math.tanh, t_interval(z))
    return (math.tanh(float(z.mean())) if len(z) else math.nan), low, high
