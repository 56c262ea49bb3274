"""The burst model: p90 of deliveries from the CPU of one delivery and the size of a burst.

Users who join every ``beat`` seconds and act every T seconds act at few instants of each T: at 24
with 0.25 s and 6 s, at 120 with 0.35 s. What u of n users say at one instant is delivered
B = u r T / n times, where r is the rate of deliveries. One process delivers them one after the
other, and each costs c seconds of CPU, so that

- the k-th delivery of a burst waits k c, and the p90 is **0.9 B c** as long as bursts do not meet;
- where they do, the next burst finds W' = max(0, W + B c - gap) of work (D. V. Lindley, Math. Proc.
  Cambridge Phil. Soc. 48, 1952), and its k-th delivery waits W' + k c;
- the p90 of all deliveries is that of the mixture of these even spreads;
- with c r of 1 or more the queue grows without end, and there is no p90.

Bursts of one instant are taken to be equal. They are not quite, and a queue that is nearly always
busy feels that: in recorded runs the p90 was within 12% of this model up to three quarters of a
core, and 36 to 48% above it from 82% on (docs/studies/chat.md).

Nothing is fitted: c is the CPU of the service on the plateau over the deliveries there, B follows
from users, beat and rate. What the model leaves out is in its error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.recordings import Run, TreatmentRecord
from perflab.statistics.comparison import CONFIDENCE
from perflab.statistics.correlation import cpu_shares
from perflab.statistics.in_words import counted
from perflab.statistics.quantiles import across_trials
from perflab.systems.chat.users import GOLDEN

P90 = 0.9
MEASURED = "plateau_p90_ms"
NEEDED = ["cpu_us_per_message", "messages_per_s", MEASURED]
# Periods until a queue that does not grow repeats itself.
PERIODS = 4
# Chosen on recorded runs of the lab: see above.
MOST_BUSY = 0.8
TOO_BUSY = "too busy for equal bursts"
NO_BEAT = "logins move users off the beat"
GROWS = "the queue grows"
NO_TRIAL = "no valid trial"
COLUMNS = [
    "treatment", "users", "instants", "burst", "cpu_us", "busy_percent", "no_overlap_ms",
    "model_ms", "measured_ms", "low", "high", "error_percent", "n", "left_out",
]  # fmt: skip


@dataclass(frozen=True)
class Beat:
    """At which instants of a period users act, and how many at each."""

    at_s: np.ndarray
    users: np.ndarray
    period_s: float

    @property
    def gaps_s(self) -> np.ndarray:
        """Return the time from each instant to the next, around the period."""
        gaps: np.ndarray = np.append(self.at_s[1:], self.at_s[0] + self.period_s) - self.at_s
        return gaps


def beat(users: int, beat_s: float, period_s: float, spread: bool = False) -> Beat:
    """Return the beat of users who are ``beat_s`` behind one another, or evenly spread."""
    number = np.arange(users)
    offsets = number * GOLDEN % 1.0 * period_s if spread else number * beat_s % period_s
    # Multiples of 0.35 s do not meet again to the last digit; a whole period is none at all.
    rounded = np.round(offsets, 6) % period_s
    at_s, counts = np.unique(rounded, return_counts=True)
    return Beat(at_s, counts, period_s)


def computed_quantile(
    when: Beat, messages_per_s: float, cpu_s: float, quantile: float = P90
) -> float:
    """Return a quantile of the waits of deliveries in s; NaN where the queue grows.

    Parameters
    ----------
    messages_per_s : float
        Deliveries a second, of all users.
    cpu_s : float
        CPU of the service for each.
    """
    work_s = when.users / when.users.sum() * messages_per_s * when.period_s * cpu_s
    if not (0 < messages_per_s * cpu_s < 1):
        return math.nan
    waiting_s = _left_behind(work_s, when.gaps_s)
    # The share of deliveries within a time is a broken line with bends where bursts begin and end.
    bends = np.unique(np.concatenate([waiting_s, waiting_s + work_s]))
    within = np.clip(bends[:, None] - waiting_s, 0, work_s).sum(axis=1) / work_s.sum()
    return float(np.interp(quantile, within, bends))


def _left_behind(work_s: np.ndarray, gaps_s: np.ndarray) -> np.ndarray:
    """Return the work that each burst of a period finds."""
    left, found = 0.0, np.zeros(len(work_s))
    for _ in range(PERIODS):
        for place, (work, gap) in enumerate(zip(work_s, gaps_s, strict=True)):
            found[place] = left
            left = max(0.0, left + work - gap)
    return found


def burst_model(run: Run) -> pd.DataFrame:
    """Return the model beside the measured p90, a row per treatment.

    Columns: treatment (its name), users, instants (at which they act), burst (deliveries that the
    largest one has), cpu_us (of a delivery), busy_percent (of a core), no_overlap_ms (0.9 B c of
    the largest burst), model_ms, measured_ms with ``low`` and ``high`` (95%), error_percent (of the
    model), n (trials), left_out (why nothing is computed, else empty). Numbers of trials are
    typical values over the valid ones.
    """
    trials = run.valid_trials().reindex(columns=["treatment", *NEEDED])
    rows = [
        _of_treatment(item, trials[trials["treatment"] == item.name], run.record.parameters)
        for item in run.record.treatments
        if "beat_s" in item.levels
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["error_percent"] = 100 * (table["model_ms"] / table["measured_ms"] - 1)
    return table


def _of_treatment(
    item: TreatmentRecord, own: pd.DataFrame, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    levels = item.levels
    users, is_spread = int(levels["users"]), levels["first_delay"] == "spread"
    when = beat(users, float(levels["beat_s"]), float(parameters["action_s"]), is_spread)
    row: dict[str, Any] = {"treatment": item.name, "users": users, "instants": len(when.at_s)}
    whole = own.dropna(subset=NEEDED)
    if whole.empty:
        return {**row, "left_out": NO_TRIAL}
    cpu_s, rate = whole["cpu_us_per_message"] / 1e6, whole["messages_per_s"]
    burst = when.users.max() / users * rate * when.period_s
    pairs = zip(rate, cpu_s, strict=True)
    model_ms = np.array([1000 * computed_quantile(when, each, c) for each, c in pairs])
    measured = across_trials(whole[MEASURED].to_numpy(float))
    why = ""
    if levels["first_delay"] == "action":
        why = NO_BEAT
    elif np.isnan(model_ms).any():
        why = GROWS
    elif _typical(cpu_s * rate) > MOST_BUSY:
        why = TOO_BUSY
    return {
        **row,
        "burst": _typical(burst),
        "cpu_us": _typical(cpu_s * 1e6),
        "busy_percent": _typical(100 * cpu_s * rate),
        "no_overlap_ms": _typical(1000 * P90 * burst * cpu_s),
        "model_ms": math.nan if why else _typical(model_ms),
        "measured_ms": measured.value,
        "low": measured.low,
        "high": measured.high,
        "n": measured.n,
        "left_out": why,
    }


def _typical(values: Any) -> float:
    return across_trials(np.asarray(values, dtype=float)).value


WIDTH_S = 1.0
ACTIONS = ("send", "join", "leave")
PHASES = ("ramp", "plateau", "tail")
WINDOW_COLUMNS = [
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
        return pd.DataFrame(columns=WINDOW_COLUMNS)
    return pd.concat(parts, ignore_index=True)[WINDOW_COLUMNS]


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
        from scipy import stats

        margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * stats.sem(points))
        interval = f"[{middle - margin:.0f}, {middle + margin:.0f}]"
    blocks = counted(n, "block")
    return f"{middle:.0f} {interval} points of CPU more while users join (n = {blocks})"
