"""What the plots show, asked of :mod:`perflab.analysis`: no figure computes statistics itself."""

from __future__ import annotations

import math

import pandas as pd

from perflab.analysis import (
    Correlation,
    Estimate,
    across_trials,
    correlate,
    decompose,
    windows,
)
from perflab.analysis.decomposition import mean_responses
from perflab.recordings import Run

WINDOW_S = 0.1
LATENCY = "p50_ms"


def typical_values(run: Run, response: str) -> dict[str, Estimate]:
    """Return the typical ``response`` of every treatment with a valid trial, with its interval."""
    valid = run.valid_trials()
    if response not in valid:
        return {}
    found = {
        str(name): across_trials(group[response].to_numpy(float))
        for name, group in valid.groupby("treatment", sort=False)
    }
    return {name: estimate for name, estimate in found.items() if math.isfinite(estimate.value)}


def statistic(estimate: Estimate) -> str:
    """Return what the estimate is: below 6 trials a median has no 95% interval."""
    return "geometric mean" if estimate.method == "t on logs" else "median"


def in_words(estimate: Estimate, form: str) -> str:
    """Return three lines: value, interval (or that there is none), n; of one trial only two."""
    value = form.format(estimate.value)
    if estimate.n == 1:
        return f"{value}\none trial"
    if not estimate.supported:
        return f"{value}\nno interval\nn = {estimate.n}"
    interval = f"[{form.format(estimate.low)}, {form.format(estimate.high)}]"
    return f"{value}\n{interval}\nn = {estimate.n}"


def parts(run: Run) -> pd.DataFrame:
    """Return treatment, part, mean_ms and its interval, the parts not in any order."""
    return decompose(run.requests())[["treatment", "part", "mean_ms", "low_ms", "high_ms"]]


def responses(run: Run) -> pd.DataFrame:
    """Return treatment, mean_ms of its responses with its interval, and trials."""
    return mean_responses(run.requests())


def cpu_windows(run: Run, services: tuple[str, ...]) -> pd.DataFrame:
    """Return the time windows of valid trials that hold an answer, in the order they happened.

    Columns: treatment, trial_id, start_ns, p50_ms and ``cpu_<service>`` (1.0 = one core) of the
    services that were sampled.
    """
    samples = run.samples()
    sampled = [name for name in services if name in set(samples["service"])]
    columns = ["treatment", "trial_id", "start_ns", LATENCY, *(f"cpu_{name}" for name in sampled)]
    return windows(run.requests(), samples, sampled, WINDOW_S)[columns].dropna()


def latency_and_cpu(table: pd.DataFrame, service: str) -> Correlation:
    """Return the correlation of a service's CPU with latency, from :func:`cpu_windows`."""
    return correlate(table, f"cpu_{service}", LATENCY)
