"""Messages of one kind over a trial, in windows of equal width: do they stay level?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.recordings import Run, Steady

COLUMNS = ["trial_id", "treatment", "start_ns", "throughput_rps", "p50_ms"]


def message_windows(run: Run, steady: Steady, count: int) -> pd.DataFrame:
    """Cut every valid trial's time of steadiness into so many equal windows.

    Columns: trial_id, treatment, start_ns; throughput_rps, the messages that came in a window, a
    second; p50_ms, the median time since those planned in it were due (NaN without one). Trials
    without such a time have no rows.
    """
    parts = []
    for row in run.valid_trials().to_dict("records"):
        begin, end = span_ns(row, steady)
        if end > begin:
            parts.append(_of_trial(run, row, steady.kind, (begin, end), count))
    return pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)


def span_ns(row: Mapping[Any, Any], steady: Steady) -> tuple[int, int]:
    """Return between which instants a trial was to be steady; (0, 0) where it never was to be."""
    names = steady.begin_column or "begin_ns", steady.end_column or "end_ns"
    begin, end = (float(row.get(name) or 0) for name in names)
    return (0, 0) if math.isnan(begin + end) else (int(row[names[0]]), int(row[names[1]]))


def _of_trial(
    run: Run, row: Mapping[Any, Any], kind: str, span: tuple[int, int], count: int
) -> pd.DataFrame:
    table = run.messages([str(row["trial_id"])])
    own = table[table["kind"] == kind]
    begin, end = span
    width_ns = max(1, (end - begin) // count)
    places = {name: (own[name] - begin) // width_ns for name in ("at_ns", "planned_ns")}
    latency_ms = (own["at_ns"] - own["planned_ns"]) / 1e6
    index = pd.RangeIndex(count)
    came = places["at_ns"].value_counts().reindex(index, fill_value=0)
    return pd.DataFrame(
        {
            "trial_id": row["trial_id"],
            "treatment": row["treatment"],
            "start_ns": begin + width_ns * index.to_numpy(),
            "throughput_rps": came / (width_ns / 1e9),
            "p50_ms": latency_ms.groupby(places["planned_ns"]).median().reindex(index),
        }
    )
