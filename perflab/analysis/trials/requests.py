"""A load's requests in few numbers: percentiles with intervals, where the time went.

Requests of one load (``perflab load --out``) are autocorrelated, so its intervals say how well
*this load's* percentile is known, not what another load would show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perflab.analysis.methods.quantiles import quantile
from perflab.analysis.trials.decomposition import decompose
from perflab.errors import AnalysisError
from perflab.percentiles import CENSORED, bounds_of
from perflab.recordings.columns import PHASE_COLUMN

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
# What the bands of `decompose` are called here.
BANDS = {"all": "all", "around the median": "median", "slowest 5%": "tail"}
INSTANTS = ("planned_ns", "started_ns", "sent_ns", "done_ns")
CODED = ("stage", "error")


@dataclass(frozen=True)
class RequestSummary:
    """What a load's requests show.

    ``percentiles``: time (response, service), share, value_ms, low_ms, high_ms (NaN where n is
    too small, or where requests that were cut off before their end could move it) and at_least_ms,
    what it is at least in that case. ``parts``: band, part, mean_ms, share; the parts of a band add
    up to its mean response.
    """

    requests: int
    errors: int
    percentiles: pd.DataFrame
    parts: pd.DataFrame


def summarise(path: Path | str) -> RequestSummary:
    """Summarise a Parquet file of requests: its measured stage, successes only.

    Raises
    ------
    AnalysisError
        The file cannot be read, lacks a column, or holds no success.
    """
    measured = _measured(path)
    good = measured[measured["error"] == ""]
    cut = measured[measured["error"].isin(CENSORED)]
    if good.empty:
        raise AnalysisError(f"{path}: none of its {len(measured)} measured requests succeeded")
    percentiles = [
        *_percentiles("response", "planned_ns", good, cut),
        *_percentiles("service", "sent_ns", good, cut),
    ]
    return RequestSummary(
        len(measured),
        len(measured) - len(good),
        pd.DataFrame(percentiles),
        _parts(good),
    )


def _measured(path: Path | str) -> pd.DataFrame:
    try:
        names = pq.read_schema(path).names
        if missing := [name for name in (*INSTANTS, *CODED) if name not in names]:
            raise AnalysisError(f"{path}: has no column {', '.join(missing)}")
        phases = [name for name in names if PHASE_COLUMN.fullmatch(name)]
        table = pq.read_table(
            path,
            columns=[*INSTANTS, *CODED, *phases],
            read_dictionary=list(CODED),
            filters=[("stage", "=", "measure")],
        )
        measured: pd.DataFrame = table.to_pandas()
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: cannot be read: {error}") from None
    return measured


def _percentiles(
    name: str, since: str, good: pd.DataFrame, cut: pd.DataFrame
) -> list[dict[str, float | str]]:
    """Return percentiles with their intervals; what was cut off had taken so long at least."""
    begun = cut[cut[since] > 0]
    known, elapsed = ((own["done_ns"] - own[since]).to_numpy() / 1e6 for own in (good, begun))
    bounds = bounds_of(known, elapsed, [100 * share for share in SHARES]) if len(elapsed) else {}
    ordered = np.sort(np.concatenate([known, elapsed]))
    rows: list[dict[str, float | str]] = []
    for share in SHARES:
        at_least = bounds[100 * share].at_least if bounds else math.nan
        found = quantile(ordered, share)
        shown = (found.value, found.low, found.high)
        if not (found.supported and math.isnan(at_least)):
            shown = (math.nan, math.nan, math.nan)
        row = dict(zip(("value_ms", "low_ms", "high_ms"), shown, strict=True))
        rows.append({"time": name, "share": share, **row, "at_least_ms": at_least})
    return rows


def _parts(good: pd.DataFrame) -> pd.DataFrame:
    """Return the parts of the mean response of each band, a load being one trial."""
    one = good.assign(treatment="load", trial_id="load")
    tables = [decompose(one, band).assign(band=name) for name, band in BANDS.items()]
    return pd.concat(tables, ignore_index=True)[["band", "part", "mean_ms", "share"]]
