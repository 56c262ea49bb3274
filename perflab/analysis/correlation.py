"""Latency against CPU over time windows, correlated with the trial as the unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

SMALLEST_WINDOWS = 4
PERMUTATIONS = 2000


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho over windows within trials, averaged over trials.

    The interval is Student's t over the trials' Fisher-transformed correlations, since windows of
    one trial are autocorrelated and cannot be counted as independent; ``n`` counts trials.
    """

    rho: float
    low: float
    high: float
    p_value: float
    n: int
    windows: int

    def __str__(self) -> str:
        if self.n < 2 or np.isnan(self.rho):
            return f"n too small ({self.n} trials)"
        return f"rho {self.rho:.2f} [{self.low:.2f}, {self.high:.2f}], n = {self.n} trials"


def windows(
    requests: pd.DataFrame, samples: pd.DataFrame, services: Sequence[str], width_s: float = 0.1
) -> pd.DataFrame:
    """Return one row per trial and window.

    Columns: trial_id, treatment, block, begin_s, requests, throughput_rps, p50_ms, p95_ms of the
    requests done in it, and ``cpu_<service>`` (1.0 = one core), interpolated from cumulative time.
    """
    rows = []
    for trial, own in requests[requests["error"] == ""].groupby("trial_id", sort=False):
        rows.extend(_trial_windows(own, samples[samples["trial_id"] == trial], services, width_s))
    return pd.DataFrame(rows)


def _trial_windows(
    requests: pd.DataFrame, samples: pd.DataFrame, services: Sequence[str], width_s: float
) -> list[dict[str, object]]:
    begin, end = int(requests["planned_ns"].min()), int(requests["done_ns"].max())
    count = int((end - begin) / (width_s * 1e9))
    edges = begin + np.arange(count + 1) * int(width_s * 1e9)
    cpu = {name: _cpu_between(samples[samples["service"] == name], edges) for name in services}
    response_ms = (requests["done_ns"] - requests["planned_ns"]) / 1e6
    place = np.searchsorted(edges, requests["done_ns"].to_numpy(), side="right") - 1
    first = requests.iloc[0]
    rows = []
    for number, inside in response_ms.groupby(place):
        window = int(str(number))
        if window >= count:
            continue
        rows.append({
            "trial_id": first["trial_id"], "treatment": first["treatment"],
            "block": first["block"], "begin_s": window * width_s, "requests": len(inside),
            "throughput_rps": len(inside) / width_s,
            "p50_ms": float(inside.median()), "p95_ms": float(inside.quantile(0.95)),
            **{f"cpu_{name}": float(shares[window]) for name, shares in cpu.items()},
        })
    return rows


def _cpu_between(own: pd.DataFrame, edges: np.ndarray) -> np.ndarray:
    if len(own) < 2 or len(edges) < 2:
        return np.full(max(len(edges) - 1, 0), np.nan)
    used = np.interp(edges, own["t_ns"].to_numpy(), own["cpu_ns"].to_numpy())
    shares: np.ndarray = np.diff(used) / np.diff(edges)
    return shares


def correlate(table: pd.DataFrame, x: str, y: str) -> Correlation:
    """Correlate two columns of a window table within trials.

    The p-value comes from circular shifts of y within each trial, which keep its autocorrelation
    (block permutation; Good, Permutation, Parametric and Bootstrap Tests, 2005, section 9).
    """
    pairs = []
    if not table.empty:
        for _, own in table.groupby("trial_id", sort=False):
            values = own[[x, y]].dropna().to_numpy(float)
            if len(values) >= SMALLEST_WINDOWS and (np.ptp(values, axis=0) > 0).all():
                pairs.append(values)
    count = sum(len(values) for values in pairs)
    if len(pairs) < 2:
        nothing = float("nan")
        return Correlation(nothing, nothing, nothing, nothing, len(pairs), count)
    ranked = [np.apply_along_axis(stats.rankdata, 0, values) for values in pairs]
    each = np.array([_rho(values[:, 0], values[:, 1]) for values in ranked])
    scores = np.arctanh(np.clip(each, -0.999, 0.999))
    half = float(stats.t.ppf(0.975, len(scores) - 1) * stats.sem(scores))
    middle = float(scores.mean())
    return Correlation(
        float(np.tanh(middle)), float(np.tanh(middle - half)), float(np.tanh(middle + half)),
        _shift_p(ranked, float(each.mean())), len(pairs), count,
    )


def _rho(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def _shift_p(ranked: Sequence[np.ndarray], observed: float) -> float:
    random = np.random.default_rng(0)
    reached = 1
    for _ in range(PERMUTATIONS):
        shifted = [
            _rho(values[:, 0], np.roll(values[:, 1], random.integers(len(values))))
            for values in ranked
        ]
        reached += abs(float(np.mean(shifted))) >= abs(observed) - 1e-12
    return reached / (PERMUTATIONS + 1)
