"""A trial of streams over time: deliveries, users and CPU in windows, with the phase of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from perflab.analysis.curves.correlation import cpu_shares
from perflab.analysis.methods.comparison import CONFIDENCE
from perflab.recordings import Run

WIDTH_S = 1.0
ACTIONS = ("send", "join", "leave")
PHASES = ("ramp", "plateau", "tail")
COLUMNS = (
    "trial_id", "treatment", "block", "start_ns", "t_s", "phase", "joining", "users", "listeners",
    "acting", "messages_per_s", "p50_ms", "p90_ms", "p99_ms", "ping_ms", "cpu",
)  # fmt: skip
# Below it a window's p90 says little; its p99 needs more still.
SMALLEST = {50: 6, 90: 36, 99: 368}


def stream_windows(run: Run, service: str, width_s: float = WIDTH_S) -> pd.DataFrame:
    """Cut the valid trials into windows of equal width.

    Returns
    -------
    DataFrame
        One row per whole window: trial_id, treatment, block; start_ns and t_s (since the trial's
        first connection); phase (``ramp`` until all users act, ``plateau`` until the first has
        ended, ``tail``); joining (users are still logging in); at the window's middle: users
        (connected), listeners (the same with a monitor) and acting (users from half an interval
        before their first action to half of one after their last);
        messages_per_s delivered; p50_ms, p90_ms, p99_ms of their latency, NaN where the window
        holds too few; ping_ms (median); cpu of the service (1.0 = one core).
    """
    parts = [
        _of_trial(run, row, service, round(width_s * 1e9))
        for row in run.valid_trials().to_dict("records")
        if not math.isnan(float(row.get("messages_delivered") or math.nan))
    ]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def _of_trial(run: Run, row: Mapping[Any, Any], service: str, width_ns: int) -> pd.DataFrame:
    trial = str(row["trial_id"])
    table, samples = run.messages([trial]), run.samples([trial])
    begin, end = int(table["at_ns"].min()), int(table["at_ns"].max())
    edges = begin + width_ns * np.arange((end - begin) // width_ns + 1)
    middles = (edges[:-1] + edges[1:]) // 2
    index = pd.RangeIndex(len(middles))
    acted = table[table["kind"].isin(ACTIONS)].groupby("user")["at_ns"].agg(["min", "max", "size"])
    own = table[table["user"].isin(acted.index)]
    level = (int(row["plateau_begin_ns"]), int(row["plateau_end_ns"]))
    found = pd.DataFrame(
        {
            "trial_id": trial,
            "treatment": row["treatment"],
            "block": row["block"],
            "start_ns": edges[:-1],
            "t_s": (edges[:-1] - begin) / 1e9,
            "phase": _phases(middles, level),
            "joining": middles < int(row["joined_ns"]),
            "users": _present(own, middles),
            "listeners": _present(table, middles),
            "acting": _between(acted, middles),
            "cpu": cpu_shares(samples[samples["service"] == service], edges),
        },
        index=index,
    )
    delivered = table[table["kind"] == "delivery"]
    place = ((delivered["at_ns"] - begin) // width_ns).rename("window")
    latency = ((delivered["at_ns"] - delivered["planned_ns"]) / 1e6).groupby(place)
    count = latency.size().reindex(index, fill_value=0)
    found["messages_per_s"] = count / (width_ns / 1e9)
    for share, least in SMALLEST.items():
        values = latency.quantile(share / 100).reindex(index)
        found[f"p{share}_ms"] = values.where(count >= least)
    pongs = table[table["kind"] == "pong"]
    place = ((pongs["at_ns"] - begin) // width_ns).rename("window")
    waited = ((pongs["at_ns"] - pongs["planned_ns"]) / 1e6).groupby(place)
    found["ping_ms"] = waited.median().reindex(index)
    return found


def _phases(middles: np.ndarray, level: tuple[int, int]) -> np.ndarray:
    begin, end = level
    if not end:
        return np.full(len(middles), PHASES[0])
    return np.select([middles < begin, middles <= end], PHASES[:2], PHASES[2])


def _present(own: pd.DataFrame, middles: np.ndarray) -> np.ndarray:
    came = np.sort(own.loc[own["kind"] == "connected", "at_ns"].to_numpy())
    went = np.sort(own.loc[own["kind"].isin(("left", "cut")), "at_ns"].to_numpy())
    return np.searchsorted(came, middles, "right") - np.searchsorted(went, middles, "right")


def _between(acted: pd.DataFrame, middles: np.ndarray) -> np.ndarray:
    # An action stands for the whole interval around it.
    gaps = (acted["max"] - acted["min"]) / (acted["size"] - 1).clip(lower=1)
    half = float(gaps.median()) / 2 if len(gaps) else 0.0
    first, last = np.sort(acted["min"] - half), np.sort(acted["max"] + half)
    return np.searchsorted(first, middles, "right") - np.searchsorted(last, middles, "left")


@dataclass(frozen=True)
class Bands:
    """How many points of CPU one treatment has above another at the same number of users.

    ``points`` with its t interval over the ``n`` blocks that have both; NaN below 2 blocks.
    """

    upper: str
    lower: str
    points: float
    low: float
    high: float
    n: int

    def text(self) -> str:
        """Return it in a sentence."""
        if not self.n:
            return "no block holds both treatments with users joining"
        known = math.isfinite(self.low)
        interval = f"[{self.low:.0f}, {self.high:.0f}]" if known else "(no interval)"
        more = f"{self.points:.0f} {interval} points of CPU more while users join"
        return f"{more} (n = {self.n} block{'s' if self.n != 1 else ''})"


def bands(windows: pd.DataFrame, upper: str, lower: str, confidence: float = CONFIDENCE) -> Bands:
    """Compare the CPU of two treatments while users join, paired within blocks.

    Within a block, windows are matched by the number of users; their mean difference is the
    block's. The interval is Student's t over blocks.
    """
    joining = windows[windows["joining"].astype(bool)]
    means = joining.groupby(["treatment", "block", "users"])["cpu"].mean()
    found = []
    for block in sorted(joining["block"].unique()):
        try:
            both = means[upper, block] - means[lower, block]
        except KeyError:
            continue
        if both.notna().any():
            found.append(100 * float(both.mean()))
    values, n = np.array(found), len(found)
    if not n:
        return Bands(upper, lower, *(math.nan,) * 3, 0)
    middle, margin = float(values.mean()), math.nan
    if n > 1:
        spread = float(values.std(ddof=1)) / math.sqrt(n)
        margin = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * spread
    return Bands(upper, lower, middle, middle - margin, middle + margin, n)
