"""The burst model: p90 of deliveries from the CPU of one delivery and the size of a burst.

Users who join every ``beat`` seconds and act every T seconds act at few instants of each T: at 24
with 0.25 s and 6 s, at 120 with 0.35 s. The messages that u of n users send at one instant cause
B = u r T / n deliveries, where r is the rate of deliveries. One process delivers them one after
the other, and each costs c seconds of CPU, so that

- the k-th delivery of a burst waits k c, and the p90 is **0.9 B c** as long as bursts do not meet;
- where they meet, the next burst finds W' = max(0, W + B c - gap) of work (D. V. Lindley, Math.
  Proc. Cambridge Phil. Soc. 48, 1952), and its k-th delivery waits W' + k c;
- the p90 of all deliveries is the p90 of the mixture of these uniform distributions;
- if c r is 1 or more, the queue grows without end, and there is no p90.

The model takes bursts of one instant to be equal. They differ a little, which matters to a queue
that is nearly always busy: in recorded runs the p90 was within 12% of this model up to three
quarters of a core, and 36 to 48% above it from 82% on (docs/studies/chat.md).

No parameter is fitted: c is the CPU of the service on the plateau over the deliveries there, and B
follows from users, beat and rate. The error shows what the model leaves out.
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
# The limit comes from the recorded runs that are named above.
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
    # Rounding makes equal instants equal to the last digit; a whole period counts as 0.
    rounded = np.round(offsets, 6) % period_s
    at_s, counts = np.unique(rounded, return_counts=True)
    return Beat(at_s, counts, period_s)


def computed_quantile(
    users_beat: Beat, messages_per_s: float, cpu_s: float, quantile: float = P90
) -> float:
    """Return a quantile of the waits of deliveries in s; NaN where the queue grows.

    Parameters
    ----------
    messages_per_s : float
        Deliveries a second, of all users.
    cpu_s : float
        CPU of the service for each.
    """
    work_s = (
        users_beat.users / users_beat.users.sum() * messages_per_s * users_beat.period_s * cpu_s
    )
    if not (0 < messages_per_s * cpu_s < 1):
        return math.nan
    waiting_s = _left_behind(work_s, users_beat.gaps_s)
    # The distribution function is piecewise linear, with bends where bursts begin and end.
    bends = np.unique(np.concatenate([waiting_s, waiting_s + work_s]))
    within = np.clip(bends[:, None] - waiting_s, 0, work_s).sum(axis=1) / work_s.sum()
    return float(np.interp(quantile, within, bends))


def _left_behind(work_s: np.ndarray, gaps_s: np.ndarray) -> np.ndarray:
    """Return the work in s that each burst of a period finds in the queue."""
    left, queued_s = 0.0, np.zeros(len(work_s))
    for _ in range(PERIODS):
        for burst, (work, gap) in enumerate(zip(work_s, gaps_s, strict=True)):
            queued_s[burst] = left
            left = max(0.0, left + work - gap)
    return queued_s


def burst_model(run: Run) -> pd.DataFrame:
    """Return the model beside the measured p90, a row per treatment.

    Columns: treatment (its name), users, instants (at which they act), burst (deliveries of the
    largest burst), cpu_us (of a delivery), busy_percent (of a core), no_overlap_ms (0.9 B c of the
    largest burst), model_ms, measured_ms with ``low`` and ``high`` (95%), error_percent (of the
    model), n (trials), left_out (why the model does not apply, else empty). Measured numbers are
    typical values over valid trials.
    """
    trials = run.valid_trials().reindex(columns=["treatment", *NEEDED])
    rows = [
        _of_treatment(
            treatment, trials[trials["treatment"] == treatment.name], run.record.parameters
        )
        for treatment in run.record.treatments
        if "beat_s" in treatment.levels
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["error_percent"] = 100 * (table["model_ms"] / table["measured_ms"] - 1)
    return table


def _of_treatment(
    treatment: TreatmentRecord, trials: pd.DataFrame, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    levels = treatment.levels
    users, is_spread = int(levels["users"]), levels["first_delay"] == "spread"
    users_beat = beat(users, float(levels["beat_s"]), float(parameters["action_s"]), is_spread)
    row: dict[str, Any] = {
        "treatment": treatment.name,
        "users": users,
        "instants": len(users_beat.at_s),
    }
    measured_trials = trials.dropna(subset=NEEDED)
    if measured_trials.empty:
        return {**row, "left_out": NO_TRIAL}
    cpu_s, rate = measured_trials["cpu_us_per_message"] / 1e6, measured_trials["messages_per_s"]
    burst = users_beat.users.max() / users * rate * users_beat.period_s
    pairs = zip(rate, cpu_s, strict=True)
    model_ms = np.array(
        [1000 * computed_quantile(users_beat, per_s, cost_s) for per_s, cost_s in pairs]
    )
    measured = across_trials(measured_trials[MEASURED].to_numpy(float))
    left_out = ""
    if levels["first_delay"] == "action":
        left_out = NO_BEAT
    elif np.isnan(model_ms).any():
        left_out = GROWS
    elif _typical(cpu_s * rate) > MOST_BUSY:
        left_out = TOO_BUSY
    return {
        **row,
        "burst": _typical(burst),
        "cpu_us": _typical(cpu_s * 1e6),
        "busy_percent": _typical(100 * cpu_s * rate),
        "no_overlap_ms": _typical(1000 * P90 * burst * cpu_s),
        "model_ms": math.nan if left_out else _typical(model_ms),
        "measured_ms": measured.value,
        "low": measured.low,
        "high": measured.high,
        "n": measured.n,
        "left_out": left_out,
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
# A p90 of fewer deliveries says little.
FEWEST = 36


def stream_windows(run: Run, service: str, width_s: float = WIDTH_S) -> pd.DataFrame:
    """Cut the valid trials into windows of equal width.

    Returns
    -------
    DataFrame
        One row per whole window: trial_id, treatment, block; t_s (since the trial's first
        connection); at the window's middle phase (``ramp`` until all users act, ``plateau`` until
        the first user has ended, ``tail``), joining (users are still logging in) and users
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
    window = ((delivered["at_ns"] - begin) // width_ns).rename("window")
    latency = ((delivered["at_ns"] - delivered["planned_ns"]) / 1e6).groupby(window)
    deliveries = latency.size().reindex(index, fill_value=0)
    return pd.DataFrame(
        {
            "trial_id": trial,
            "treatment": row["treatment"],
            "block": row["block"],
            "t_s": (edges[:-1] - begin) / 1e9,
            "phase": _phases(middles, int(row["plateau_begin_ns"]), int(row["plateau_end_ns"])),
            "joining": middles < int(row["joined_ns"]),
            "users": _present(table[table["user"].isin(acted)], middles),
            "messages_per_s": deliveries / (width_ns / 1e9),
            "p90_ms": latency.quantile(0.9).reindex(index).where(deliveries >= FEWEST),
            "cpu": cpu_shares(samples[samples["service"] == service], edges),
        },
        index=index,
    )


def _phases(middles: np.ndarray, begin_ns: int, end_ns: int) -> np.ndarray:
    if not end_ns:
        return np.full(len(middles), PHASES[0])
    return np.select([middles < begin_ns, middles <= end_ns], PHASES[:2], PHASES[2])


def _present(messages: pd.DataFrame, middles: np.ndarray) -> np.ndarray:
    connected_ns = np.sort(messages.loc[messages["kind"] == "connected", "at_ns"].to_numpy())
    left_ns = np.sort(messages.loc[messages["kind"].isin(("left", "cut")), "at_ns"].to_numpy())
    return np.searchsorted(connected_ns, middles, "right") - np.searchsorted(
        left_ns, middles, "right"
    )


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
