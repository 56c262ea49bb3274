"""A trial of streams over time: deliveries, users and CPU in windows, with the phase of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from perflab.analysis.curves.correlation import cpu_shares
from perflab.analysis.methods.comparison import CONFIDENCE
from perflab.numerals import counted
from perflab.recordings import Run

WIDTH_S = 1.0
ACTIONS = ("send", "join", "leave")
PHASES = ("ramp", "plateau", "tail")
COLUMNS = [
    "trial_id", "treatment", "block", "t_s", "phase", "joining", "users", "messages_per_s",
    "p90_ms", "cpu",
]  # fmt: skip
# With fewer deliveries the p90 of a window says little.
FEWEST = 36


def stream_windows(run: Run, service: str, width_s: float = WIDTH_S) -> pd.DataFrame:
    """Cut the valid trials into windows of equal width.

    Returns
    -------
    DataFrame
        One row per whole window: trial_id, treatment, block; t_s (since the trial's first
        connection); phase (``ramp`` until all users act, ``plateau`` until the first has ended,
        ``tail``) and joining (users are still logging in), both at the window's middle, as users
        (connected); messages_per_s delivered; p90_ms of their latency, NaN where the window holds
        too few; cpu of the service (1.0 = one core).
    """
    parts = [
        _of_trial(run, row, service, round(width_s * 1e9))
        for row in run.valid_trials().to_dict("records")
        if not math.isnan(float(row.get("messages_delivered") or math.nan))
    ]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def _of_trial(run: Run, row: Mapping[Any, Any], service: str, width_ns: int) -> pd.DataFrame:
    trial = str(row["trial_id"])
    table, samples = run.messages([trial]), run.samples([trial])
    begin, end = int(table["at_ns"].min()), int(table["at_ns"].max())
    edges = begin + width_ns * np.arange((end - begin) // width_ns + 1)
    middles = (edges[:-1] + edges[1:]) // 2
    index = pd.RangeIndex(len(middles))
    acted = table.loc[table["kind"].isin(ACTIONS), "user"].unique()
    delivered = table[table["kind"] == "delivery"]
    place = ((delivered["at_ns"] - begin) // width_ns).rename("window")
    latency = ((delivered["at_ns"] - delivered["planned_ns"]) / 1e6).groupby(place)
    count = latency.size().reindex(index, fill_value=0)
    return pd.DataFrame(
        {
            "trial_id": trial,
            "treatment": row["treatment"],
            "block": row["block"],
            "t_s": (edges[:-1] - begin) / 1e9,
            "phase": _phases(middles, int(row["plateau_begin_ns"]), int(row["plateau_end_ns"])),
            "joining": middles < int(row["joined_ns"]),
            "users": _present(table[table["user"].isin(acted)], middles),
            "messages_per_s": count / (width_ns / 1e9),
            "p90_ms": latency.quantile(0.9).reindex(index).where(count >= FEWEST),
            "cpu": cpu_shares(samples[samples["service"] == service], edges),
        },
        index=index,
    )


def _phases(middles: np.ndarray, begin_ns: int, end_ns: int) -> np.ndarray:
    if not end_ns:
        return np.full(len(middles), PHASES[0])
    return np.select([middles < begin_ns, middles <= end_ns], PHASES[:2], PHASES[2])


def _present(messages: pd.DataFrame, middles: np.ndarray) -> np.ndarray:
    came = np.sort(messages.loc[messages["kind"] == "connected", "at_ns"].to_numpy())
    went = np.sort(messages.loc[messages["kind"].isin(("left", "cut")), "at_ns"].to_numpy())
    return np.searchsorted(came, middles, "right") - np.searchsorted(went, middles, "right")


def bands(windows: pd.DataFrame, upper: str, lower: str) -> str:
    """Say how many points of CPU one treatment has above another while users join.

    Within a block, windows are matched by the number of users; their mean difference is the
    block's. The interval is Student's t over blocks.
    """
    joining = windows[windows["joining"].astype(bool)]
    means = joining.pivot_table(values="cpu", index=["block", "users"], columns="treatment")
    both = means.reindex(columns=[upper, lower]).dropna()
    points = (100 * (both[upper] - both[lower])).groupby("block").mean().to_numpy(float)
    n = len(points)
    if not n:
        return "no block holds both treatments with users joining"
    middle, interval = float(points.mean()), "(no interval)"
    if n > 1:
        margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * stats.sem(points))
        interval = f"[{middle - margin:.0f}, {middle + margin:.0f}]"
    blocks = counted(n, "block")
    return f"{middle:.0f} {interval} points of CPU more while users join (n = {blocks})"
