"""A run in one table: what each treatment did, over its valid trials."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from perflab.analysis.methods.quantiles import across_trials
from perflab.recordings import Response, Run, typical
from perflab.recordings.imported import is_imported
from perflab.recordings.responses import at_least_column
from perflab.recordings.tables import NOT_JUDGED


def summary_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment, in the order of the record.

    Columns: treatment, label; valid, invalid, failed (numbers of trials that were not
    superseded); requests, errors (sums over valid trials); for every typical response that the run
    has (see :func:`measured_responses`) its typical value over valid trials with ``_low``,
    ``_high`` (95%, NaN where n is too small) and ``_n`` (trials that have it);
    ``flush_p50_us_min`` and ``_max`` (range of the trials' median flushes).
    Of imported results all trials stand in the place of valid ones, and ``not judged`` counts them;
    requests and errors are None where the tool does not tell them.
    """
    trials = run.trials()
    trials = trials[~trials["superseded"]]
    responses = measured_responses(run)
    imported = is_imported(run.record)
    rows = []
    for treatment in run.record.treatments:
        own = trials[trials["treatment"] == treatment.name]
        valid = own[own["state"] == (NOT_JUDGED if imported else "valid")]
        rows.append(
            {
                "treatment": treatment.name,
                "label": treatment.label or treatment.name,
                **{
                    state: int((own["state"] == state).sum())
                    for state in ("valid", "invalid", "failed")
                },
                **({NOT_JUDGED: len(valid)} if imported else {}),
                "requests": _total(valid["requests"]),
                "errors": _total(valid["errors"]),
                **typical_values(valid, responses),
                **_flush_range(valid),
            }
        )
    return pd.DataFrame(rows)


def _total(counts: pd.Series[Any]) -> int | None:
    """Return the sum of what was counted; None where a tool did not tell it (-1)."""
    return None if (counts < 0).any() else int(counts.sum())


def measured_responses(run: Run) -> dict[str, Response]:
    """Return the typical responses that were measured in some trial, by column, as declared.

    Where nothing was measured at all these are those that could have been, by their names.
    """
    trials = run.trials()
    own = typical(run.record, map(str, trials.columns))
    found = {name: each for name, each in own.items() if _is_known(trials, name)}
    return found or own


def _is_known(trials: pd.DataFrame, name: str) -> bool:
    """Say whether some trial has a response, or knows what it is at least."""
    return bool(trials[name].notna().any()) or not math.isnan(least_value(trials, name))


def measures(run: Run, response: str) -> bool:
    """Say whether some trial of the run has a number for a response."""
    trials = run.trials()
    return response in trials.columns and bool(trials[response].notna().any())


def typical_values(valid: pd.DataFrame, names: Iterable[str]) -> dict[str, Any]:
    """Return typical values of the trials' columns, each with ``_low``, ``_high`` (95%), ``_n``.

    Where a trial knows only what its value is at least, there is no typical one but a ``_low``.
    """
    row: dict[str, Any] = {}
    for name in names:
        least = least_value(valid, name)
        if not math.isnan(least):
            row |= {name: math.nan, f"{name}_low": least, f"{name}_high": math.nan}
            row[f"{name}_n"] = len(valid)
            continue
        found = across_trials(valid[name].to_numpy(float))
        row |= {
            name: found.value,
            f"{name}_low": found.low,
            f"{name}_high": found.high,
            f"{name}_n": found.n,
        }
    return row


def least_value(valid: pd.DataFrame, name: str) -> float:
    """Return what a response is at least in all trials; NaN unless some know no more of it."""
    column = at_least_column(name)
    if column not in valid or not valid[column].notna().any():
        return math.nan
    known = valid[name].fillna(valid[column]) if name in valid else valid[column]
    return float(known.min())


def _flush_range(valid: pd.DataFrame) -> dict[str, float]:
    flush = valid["flush_p50_us"].dropna()
    low, high = (float(flush.min()), float(flush.max())) if len(flush) else (math.nan, math.nan)
    return {"flush_p50_us_min": low, "flush_p50_us_max": high}
