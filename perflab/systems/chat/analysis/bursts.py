"""The burst model: p90 of deliveries from the CPU of one delivery and the size of a burst.

Users who join every ``beat`` seconds and act every T seconds act at few instants of each T: at 24
with 0.25 s and 6 s, at 120 with 0.35 s. What u users say at one instant is delivered B = u r T / n
times, where r is the rate of deliveries and n the number of all users (each acts once in T). One
process delivers them one after the other, and each costs c seconds of CPU, so that

- the k-th delivery of a burst waits k c: waits are evenly spread between 0 and B c, and their p90
  is **0.9 B c**, as long as a burst is over before the next one comes (no overlap);
- where it is not, the next one begins behind what is left: W' = max(0, W + B c - gap), the
  recursion of a queue with one server (D. V. Lindley, Math. Proc. Cambridge Phil. Soc. 48, 1952),
  and the k-th delivery waits W + k c;
- the p90 of all deliveries is that of the mixture of these even spreads, a burst of B counting B
  times;
- with c r of 1 or more the queue grows without end, and there is no p90.

Bursts of one instant are taken to be equal. They are not quite (a few users join or leave channels
instead of sending), and a queue that is nearly always busy feels that: in the lab's recorded runs
the p90 was within 12% of this model up to three quarters of a core, and 36 to 48% above it from 82%
on (docs/studies/chat.md). Busier rungs than 80% are therefore not predicted.

Nothing is fitted so far: c is the CPU of the service on the plateau over the deliveries there, B
follows from users, beat and rate. What the model leaves out (the receiver's side, work between
bursts, sends that differ in size) shows as a factor between measured and computed. That one factor
is fitted: as the geometric mean over all *other* rungs, so that every rung's error is that of a
prediction made without it (leave one out; M. Stone, J. R. Statist. Soc. B 36, 1974).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.methods.quantiles import across_trials
from perflab.recordings import Run, TreatmentRecord
from perflab.systems.chat.users import GOLDEN

P90 = 0.9
MEASURED = "plateau_p90_ms"
NEEDED = ["cpu_us_per_message", "messages_per_s", MEASURED]
# Below three rungs the factor of the others would be that of one.
FEWEST_RUNGS = 3
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
    "model_ms", "factor", "predicted_ms", "measured_ms", "low", "high", "error_percent", "n",
    "left_out",
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
    the largest burst), model_ms, factor (of the other rungs), predicted_ms, measured_ms with
    ``low`` and ``high`` (95%), error_percent (of the prediction), n (trials), left_out (why there
    is no prediction, empty with one). Numbers of trials are typical values over the valid ones.
    """
    trials = run.valid_trials().reindex(columns=["treatment", *NEEDED])
    rows = [
        _of_treatment(item, trials[trials["treatment"] == item.name], run.record.parameters)
        for item in run.record.treatments
        if "beat_s" in item.levels
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    known = table["left_out"] == ""
    table["factor"] = _of_the_others((table["measured_ms"] / table["model_ms"]).where(known))
    table["predicted_ms"] = table["factor"] * table["model_ms"]
    table["error_percent"] = 100 * (table["predicted_ms"] / table["measured_ms"] - 1)
    return table


def _of_the_others(ratios: pd.Series[float]) -> list[float]:
    """Return for each ratio the geometric mean of the others; NaN where they are too few."""
    logs = np.log(ratios.to_numpy(float))
    known = np.isfinite(logs)
    others = known.sum() - 1
    if others < FEWEST_RUNGS - 1:
        return [math.nan] * len(logs)
    means: list[float] = np.exp((logs[known].sum() - logs) / others).tolist()
    return means


def _of_treatment(
    item: TreatmentRecord, own: pd.DataFrame, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    levels = item.levels
    when = beat(
        int(levels["users"]),
        float(levels["beat_s"]),
        float(parameters["action_s"]),
        spread=levels["first_delay"] == "spread",
    )
    row: dict[str, Any] = {
        "treatment": item.name, "users": int(levels["users"]), "instants": len(when.at_s),
    }  # fmt: skip
    whole = own.dropna(subset=NEEDED)
    if whole.empty:
        return {**row, "left_out": NO_TRIAL}
    cpu_s, rate = whole["cpu_us_per_message"] / 1e6, whole["messages_per_s"]
    burst = when.users.max() / when.users.sum() * rate * when.period_s
    pairs = zip(rate, cpu_s, strict=True)
    model_ms = np.array([1000 * computed_quantile(when, each, c) for each, c in pairs])
    measured = across_trials(whole[MEASURED].to_numpy(float))
    why = NO_BEAT if levels["first_delay"] == "action" else ""
    if not why and np.isnan(model_ms).any():
        why = GROWS
    if not why and _typical(cpu_s * rate) > MOST_BUSY:
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
