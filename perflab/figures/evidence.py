"""Typical values for the plots; no figure computes statistics itself."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.recordings import Run
from perflab.statistics.quantiles import Estimate, across_trials

# Below 6 trials a median has no 95% interval, but the geometric mean has a t interval.
MEDIAN, GEOMETRIC_MEAN = "median", "geometric mean"
TYPICAL = (MEDIAN, GEOMETRIC_MEAN)


def typical_rows(run: Run, response: str) -> pd.DataFrame:
    """Return the typical value of a response over the valid trials, a row per treatment.

    Columns: treatment, what (the statistic), value, low, high (95%, NaN if n is too small), n
    (trials). Treatments without a value have no row.
    """
    valid = run.valid_trials()
    groups = valid.groupby("treatment", sort=False) if response in valid else ()
    rows = [
        {"treatment": str(name), **estimate_row(across_trials(trials[response].to_numpy(float)))}
        for name, trials in groups
    ]
    table = pd.DataFrame(rows, columns=["treatment", "what", "value", "low", "high", "n"])
    return table[np.isfinite(table["value"].astype(float))]


def estimate_row(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as columns of :func:`typical_rows`."""
    return {
        "what": GEOMETRIC_MEAN if estimate.method == "t on logs" else MEDIAN,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
    }


def in_words(typical: Mapping[Hashable, Any], form: str) -> str:
    """Return three lines: value, interval (or that there is none), n; two for one trial."""
    value, n = form.format(typical["value"]), int(typical["n"])
    if n == 1:
        return f"{value}\none trial"
    if not math.isfinite(typical["low"]):
        return f"{value}\nno interval\nn = {n}"
    return f"{value}\n[{form.format(typical['low'])}, {form.format(typical['high'])}]\nn = {n}"


def trials_shown(run: Run) -> pd.DataFrame:
    """Return the trials that figures show: those neither superseded nor failed."""
    trials = run.trials()
    return trials[~trials["superseded"].astype(bool) & (trials["state"] != "failed")]
