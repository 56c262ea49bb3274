"""The plateau of streams, the time in which all users act, in windows: does it stay level?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.recordings import Run


def plateau_windows(run: Run, count: int) -> pd.DataFrame:
    """Cut the plateau of every valid trial into so many equal windows.

    Columns: trial_id, treatment, start_ns; throughput_rps, the deliveries that came in a window, a
    second; p50_ms, the median latency of those planned in it (NaN without one). Trials without a
    plateau have no rows.
    """
    parts = [
        _of_trial(run, row, count)
        for row in run.valid_trials().to_dict("records")
        if float(row.get("plateau_s") or 0) > 0
    ]
    columns = ["trial_id", "treatment", "start_ns", "throughput_rps", "p50_ms"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _of_trial(run: Run, row: Mapping[Any, Any], count: int) -> pd.DataFrame:
    table = run.messages([str(row["trial_id"])])
    delivered = table[table["kind"] == "delivery"]
    begin, end = int(row["plateau_begin_ns"]), int(row["plateau_end_ns"])
    width_ns = max(1, (end - begin) // count)
    places = {name: (delivered[name] - begin) // width_ns for name in ("at_ns", "planned_ns")}
    latency_ms = (delivered["at_ns"] - delivered["planned_ns"]) / 1e6
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
