"""What the plots show, asked of :mod:`perflab.analysis`: no figure computes statistics itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.correlation import Correlation, correlate, windows
from perflab.analysis.decomposition import time_parts
from perflab.analysis.quantiles import quantile
from perflab.recordings import Run

WINDOW_S = 0.1
LATENCY = "p50_ms"


@dataclass(frozen=True)
class Median:
    """Median over trials; ``low`` and ``high`` are None where n allows no 95% interval."""

    value: float
    low: float | None
    high: float | None
    n: int

    def in_words(self, form: str) -> str:
        """Return three lines: value, interval (or that there is none), n."""
        if self.low is None or self.high is None:
            return f"{form.format(self.value)}\nno interval:\nn = {self.n} < 6"
        interval = f"[{form.format(self.low)}, {form.format(self.high)}]"
        return f"{form.format(self.value)}\n{interval}\nn = {self.n}"


def medians(run: Run, response: str) -> dict[str, Median]:
    """Return the median ``response`` over the valid trials of every treatment that has one."""
    valid = run.valid_trials()
    if response not in valid:
        return {}
    return {
        str(name): _median(group[response].dropna().to_numpy(float))
        for name, group in valid.dropna(subset=[response]).groupby("treatment", sort=False)
    }


def _median(values: np.ndarray) -> Median:
    bounds = quantile(values, 0.5)
    value = float(np.median(values))
    if not bounds.supported:
        return Median(value, None, None, len(values))
    return Median(value, bounds.low, bounds.high, len(values))


def parts(run: Run) -> pd.DataFrame:
    """Return treatment, part and mean_ms, the parts in the order in which a request meets them."""
    return time_parts(run.requests())[["treatment", "part", "mean_ms"]]


def cpu_windows(run: Run, services: tuple[str, ...]) -> pd.DataFrame:
    """Return the time windows of valid trials: treatment, trial_id, begin_s, p50_ms, cpu_<service>.

    Services that were not sampled have no column.
    """
    samples = run.samples()
    sampled = [name for name in services if name in set(samples["service"])]
    columns = ["treatment", "trial_id", "begin_s", LATENCY, *(f"cpu_{name}" for name in sampled)]
    found = windows(run.requests(), samples, sampled, WINDOW_S)
    return found[columns] if len(found) else pd.DataFrame(columns=columns)


def latency_and_cpu(table: pd.DataFrame, service: str) -> Correlation:
    """Return the correlation of a service's CPU with latency, from :func:`cpu_windows`."""
    return correlate(table, f"cpu_{service}", LATENCY)
