"""What each treatment of a run typically did: a value for each response, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.doubts.failed_requests import counts_of_trials
from perflab.analysis.validity import _state_counts
from perflab.recordings import Response, Run, typical
from perflab.recordings.responses import (
    FAILURES,
    MAX_CLIENT_SHARE,
    at_least_column,
    client_column,
    resolution_column,
    split_request,
    without_client,
)
from perflab.recordings.schema import is_imported
from perflab.recordings.tables import NOT_JUDGED
from perflab.statistics.quantiles import Estimate, across_trials
from perflab.statistics.two_samples import Rate


def summary_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment, in the order of the record.

    Columns: treatment, label; valid, invalid, failed (numbers of trials that were not
    superseded); requests, errors (sums over valid trials); for every typical response of the run
    (see :func:`measured_responses`) its typical value over valid trials with ``_low``, ``_high``
    (95%, NaN if n is too small) and ``_n`` (trials that have it); ``flush_p50_us_min`` and ``_max``
    (range of the trials' median flushes). In imported results all trials take the place of valid
    ones, and ``not judged`` counts them; requests and errors are None if the tool has no counts.
    """
    trials = run.current_trials()
    responses = measured_responses(run)
    imported = is_imported(run.record)
    rows = []
    for treatment in run.record.treatments:
        group = trials[trials["treatment"] == treatment.name]
        valid = group[group["state"] == (NOT_JUDGED if imported else "valid")]
        rows.append(
            {
                "treatment": treatment.name,
                "label": treatment.label or treatment.name,
                **_state_counts(group),
                **({NOT_JUDGED: len(valid)} if imported else {}),
                "requests": _total(valid["requests"]),
                "errors": _total(valid["errors"]),
                **typical_values(valid, responses),
                "flush_p50_us_min": float(valid["flush_p50_us"].min()),
                "flush_p50_us_max": float(valid["flush_p50_us"].max()),
            }
        )
    return pd.DataFrame(rows)


def _total(counts: pd.Series[Any]) -> int | None:
    """Return the sum of counts; None if an imported count is unknown (-1)."""
    return None if (counts < 0).any() else int(counts.sum())


def measured_responses(run: Run) -> dict[str, Response]:
    """Return the declared typical responses that were measured in some trial, by column.

    If nothing was measured, these are all declared typical responses.
    """
    trials = run.trials()
    declared = typical(run.record, map(str, trials.columns))
    measured = {name: response for name, response in declared.items() if _is_known(trials, name)}
    return measured or declared


def _is_known(trials: pd.DataFrame, name: str) -> bool:
    """Return whether some trial has a value or a lower bound of a response."""
    return bool(trials[name].notna().any()) or not math.isnan(least_value(trials, name))


def measures(run: Run, response: str) -> bool:
    """Return whether some trial of the run has a value of a response."""
    trials = run.trials()
    return response in trials.columns and bool(trials[response].notna().any())


def typical_values(valid: pd.DataFrame, names: Iterable[str]) -> dict[str, Any]:
    """Return :func:`typical_value` of columns, each with ``_low``, ``_high`` (95%) and ``_n``."""
    row: dict[str, Any] = {}
    for name in names:
        found = typical_value(valid, name)
        row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        row[f"{name}_n"] = found.n
    return row


def typical_value(valid: pd.DataFrame, name: str) -> Estimate:
    """Return the typical value of a response over trials, with its 95% interval.

    Where more than a tenth of a value may be the client's own, the interval holds it without that
    part, too. A share of failures is that of all requests, because none failed in many trials. If a
    trial has only a lower bound, the value is NaN and ``low`` is that bound.
    """
    least = least_value(valid, name)
    if not math.isnan(least):
        return Estimate(math.nan, least, math.nan, len(valid), supported=False, method="bound")
    estimate = across_trials(valid[name].to_numpy(float))
    if split_request(name)[0] == FAILURES and resolution_column(name) in valid:
        return _share_of_failures(valid.dropna(subset=[name]), name, estimate)
    less = across_trials(_without_client(valid, name).to_numpy(float))
    low, high = min(estimate.low, less.low), max(estimate.high, less.high)
    return replace(estimate, low=low, high=high)


def _share_of_failures(valid: pd.DataFrame, name: str, estimate: Estimate) -> Estimate:
    """Return the share of all requests, as comparisons do, with the wider ends of both intervals.

    They are the interval of the trials, and the exact one of all requests.
    """
    counts = counts_of_trials(valid, name).sum()
    if not counts["requests"]:
        return estimate
    rate = Rate(int(counts["failed"]), int(counts["requests"]))
    low, high = rate.ends()
    low, high = float(np.fmin(low, estimate.low)), float(np.fmax(high, estimate.high))
    return replace(estimate, value=rate.share, low=low, high=high, supported=True)


def _without_client(valid: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return the trials' values, less what may be the client's own where that is much."""
    values, client = valid[name], valid.get(client_column(name))
    if client is None or not (client.abs() > MAX_CLIENT_SHARE * values).any():
        return values
    less: pd.Series[float] = without_client(values, client)
    return less


def least_value(valid: pd.DataFrame, name: str) -> float:
    """Return the lower bound of a response in all trials; NaN if no trial has only a bound."""
    column = at_least_column(name)
    if column not in valid or not valid[column].notna().any():
        return math.nan
    known = valid[name].fillna(valid[column]) if name in valid else valid[column]
    return float(known.min())
