"""The rank correlation of latency and CPU over windows of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.errors import AnalysisError
from perflab.statistics.quantiles import t_interval

WIDTH_S = 0.1
WINDOW_COLUMNS = ["trial_id", "treatment", "start_ns", "throughput_rps", "p50_ms"]
SMALLEST_WINDOWS = 6
# A rank correlation of 1 over few windows is not a perfect one: keep Fisher's z finite.
LARGEST_RHO = 0.995
SMALLEST_REST = 1e-3


@dataclass(frozen=True)
class Correlation:
    """A rank correlation within trials, averaged over trials, with its interval.

    ``n`` is the number of trials, the unit, and ``windows`` the number of their windows. ``rho`` is
    NaN without a trial, the 95% interval with fewer than 2.
    """

    rho: float
    low: float
    high: float
    n: int
    windows: int
    warnings: tuple[str, ...] = ()


def check_columns(table: pd.DataFrame, rows: str, names: Iterable[str]) -> None:
    """Raise AnalysisError where columns are missing; ``rows`` says what the table's rows are."""
    if absent := [name for name in names if name not in table.columns]:
        raise AnalysisError(f"the {rows} have no column {', '.join(absent)}")


def windows(
    requests: pd.DataFrame, samples: pd.DataFrame, services: Sequence[str], width_s: float = WIDTH_S
) -> pd.DataFrame:
    """Cut every trial's measured stage into windows.

    A request belongs to the window in which it was done. Only whole windows and successes count.
    CPU time is interpolated between samples, so ``width_s`` should hold at least two of them.

    Columns: trial_id, treatment, start_ns, throughput_rps, p50_ms (of response times, NaN in a
    window without an answer), and ``cpu_<service>`` for each of ``services`` (1.0 = one core; NaN
    for a service that was not sampled).
    """
    columns = [*WINDOW_COLUMNS, *(f"cpu_{service}" for service in services)]
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
    index = pd.RangeIndex(len(edges) - 1)
    first = requests.iloc[0]
    values = (
        first["trial_id"],
        first["treatment"],
        edges[:-1],
        response_ms.size().reindex(index, fill_value=0) / (width_ns / 1e9),
        response_ms.median().reindex(index),
    )
    table = pd.DataFrame(dict(zip(WINDOW_COLUMNS, values, strict=True)), index=index)
    for service in services:
        table[f"cpu_{service}"] = cpu_shares(samples[samples["service"] == service], edges)
    return table


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


def correlate(table: pd.DataFrame, x: str, y: str = "p50_ms", phase: str = "") -> Correlation:
    """Return Spearman's correlation of two columns of :func:`windows`, within trials.

    ``phase`` is the column that names the phase of each window. With it the correlation is within
    the phases of each trial, and a partial one given time: as users join, everything rises
    together, whether or not one column depends on the other. Phases are weighted by their windows.

    Windows of one trial are autocorrelated and treatments differ in both columns, so the trial is
    the unit: the function averages one rank correlation per trial through Fisher's z, with a t
    interval over trials. Pooling all windows would take their number for n and mix in the
    difference between treatments.

    Sources: C. Spearman, Am. J. Psychol. 15, 1904; averaging through z: N. C. Silver, W. P. Dunlap,
    J. Appl. Psychol. 72, 1987; partial rank correlation: M. G. Kendall, Biometrika 32, 1942.

    Raises
    ------
    AnalysisError
        A column is not in the table.
    """
    columns = [x, y, *([phase] if phase else [])]
    check_columns(table, "windows", columns)
    known = table[["trial_id", *columns]].dropna()
    z, window_count = [], 0
    for _, rows in known.groupby("trial_id", sort=False):
        phases = [part for _, part in rows.groupby(phase, sort=False)] if phase else [rows]
        usable = [part for part in phases if _can_vary(part, x, y)]
        if not usable:
            continue
        values = [_z(part[x], part[y], beyond_time=bool(phase)) for part in usable]
        sizes = np.array([len(part) for part in usable])
        # The variance of z is 1 / (windows - 3); the partial correlation costs one window more.
        z.append(float(np.average(values, weights=sizes - 3 - bool(phase))))
        window_count += int(sizes.sum())
    return _over_trials(np.array(z), window_count, table["trial_id"].nunique() - len(z))


def _can_vary(part: pd.DataFrame, x: str, y: str) -> bool:
    return len(part) >= SMALLEST_WINDOWS and part[x].nunique() > 1 and part[y].nunique() > 1


def _z(x: pd.Series[Any], y: pd.Series[Any], beyond_time: bool) -> float:
    """Return Fisher's z of the rank correlation, or of the partial one given the windows' order."""
    from scipy import stats

    rho = float(stats.spearmanr(x, y).statistic)
    if beyond_time:
        order = np.arange(len(x))
        with_x, with_y = (float(stats.spearmanr(order, series).statistic) for series in (x, y))
        rest = math.sqrt((1 - with_x**2) * (1 - with_y**2))
        # A series that only rises or falls with time leaves nothing to correlate.
        rho = (rho - with_x * with_y) / rest if rest > SMALLEST_REST else 0.0
    return math.atanh(max(-LARGEST_RHO, min(LARGEST_RHO, rho)))


def _over_trials(z: np.ndarray, window_count: int, left_out: int) -> Correlation:
    warnings: tuple[str, ...] = ()
    if left_out:
        warnings = (
            f"{left_out} trials have fewer than {SMALLEST_WINDOWS} windows or constant values and "
            "are left out",
        )
    rho = math.tanh(float(z.mean())) if len(z) else math.nan
    low, high = map(math.tanh, t_interval(z))
    return Correlation(rho, low, high, len(z), window_count, warnings)
