"""Watched functions of profiled trials: their part of the time.

The columns of the trials are taken, not the chains: what was watched is said by the experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pandas as pd

from perflab.analysis.methods.quantiles import across_trials
from perflab.recordings import Run

PERCENT = 100.0
SHARE = re.compile(r"profile_(.+)_share")
WATCHED = [
    "treatment", "watched", "share %", "share low", "share high", "us", "us low", "us high", "n",
]  # fmt: skip


def watched(run: Run) -> pd.DataFrame:
    """Return how much of the time every watched function takes, per profiled treatment.

    Columns: treatment (its label), watched (the name); ``share %`` of the samples with the
    function anywhere in their chain, and ``us`` of it per request or message, as the profiler was
    told to count: typical values over the valid trials with their 95% intervals (NaN where n is
    too small); n (trials). A function may hold another: shares do not add up.
    """
    rows = []
    for label, own in by_treatment(run):
        for name in watched_names(own):
            share = across_trials(PERCENT * own[f"profile_{name}_share"])
            time = across_trials(own[_time_column(own, name)])
            row: dict[str, Any] = {"treatment": label, "watched": name}
            row |= {"share %": share.value, "share low": share.low, "share high": share.high}
            row |= {"us": time.value, "us low": time.low, "us high": time.high}
            rows.append({**row, "n": share.n})
    return pd.DataFrame(rows, columns=WATCHED)


def by_treatment(run: Run) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield every treatment's label and its valid trials, in the order of the record."""
    trials = run.valid_trials()
    for treatment in run.record.treatments:
        yield treatment.label or treatment.name, trials[trials["treatment"] == treatment.name]


def watched_names(own: pd.DataFrame) -> list[str]:
    """Return what was watched in some of these trials."""
    found = [match[1] for column in own.columns if (match := SHARE.fullmatch(str(column)))]
    return [name for name in found if own[f"profile_{name}_share"].notna().any()]


def _time_column(own: pd.DataFrame, name: str) -> str:
    """Return the column with the time of a watched function, whatever it is told by."""
    begin = f"profile_{name}_us_per_"
    return next(
        column
        for column in map(str, own.columns)
        if column.startswith(begin) and own[column].notna().any()
    )
