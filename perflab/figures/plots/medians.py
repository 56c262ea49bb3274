"""A treatment's typical value over its valid trials, and how a figure words it."""

from __future__ import annotations

import math

from perflab.analysis.quantiles import Estimate, across_trials
from perflab.recordings import Run


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
    """Return three lines: value, interval (or why there is none), n."""
    value = form.format(estimate.value)
    if not estimate.supported:
        return f"{value}\nno interval\nn = {estimate.n}"
    interval = f"[{form.format(estimate.low)}, {form.format(estimate.high)}]"
    return f"{value}\n{interval}\nn = {estimate.n}"
