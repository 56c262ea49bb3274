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
that is nearly always busy (docs/studies/chat.md has recorded runs). No parameter is fitted: c is
the CPU of the service on the plateau over the deliveries there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, RowChart, Rules, Texts
from perflab.figures.origin import Page
from perflab.figures.theme import PALETTE
from perflab.figures.view import View
from perflab.recordings import Run, TreatmentRecord
from perflab.statistics.quantiles import across_trials
from perflab.systems.chat.users import GOLDEN

QUANTILE = 0.9
RESPONSE = "plateau_p90_ms"
NEEDED = ["cpu_us_per_message", "messages_per_s", RESPONSE]
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


def beat(users: int, beat_s: float, period_s: float, spread: bool = False) -> Beat:
    """Return the beat of users who are ``beat_s`` behind one another, or evenly spread."""
    number = np.arange(users)
    offsets = number * GOLDEN % 1.0 * period_s if spread else number * beat_s % period_s
    # Rounding makes equal instants equal to the last digit; a whole period counts as 0.
    at_s, counts = np.unique(np.round(offsets, 6) % period_s, return_counts=True)
    return Beat(at_s, counts, period_s)


def computed_quantile(
    users_beat: Beat, messages_per_s: float, cpu_s: float, quantile: float = QUANTILE
) -> float:
    """Return a quantile of the waits of deliveries in s; NaN where the queue grows.

    All users together cause ``messages_per_s`` deliveries, each of ``cpu_s`` of the service's CPU.
    """
    period_s = users_beat.period_s
    work_s = users_beat.users / users_beat.users.sum() * messages_per_s * period_s * cpu_s
    if not (0 < messages_per_s * cpu_s < 1):
        return math.nan
    gaps_s = np.append(users_beat.at_s[1:], users_beat.at_s[0] + period_s) - users_beat.at_s
    waiting_s = _left_behind(work_s, gaps_s)
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
    trials = run.valid_trials().reindex(columns=["treatment", *NEEDED]).dropna(subset=NEEDED)
    action_s = float(run.record.parameters["action_s"])
    rows = [
        _of_treatment(treatment, trials[trials["treatment"] == treatment.name], action_s)
        for treatment in run.record.treatments
        if "beat_s" in treatment.levels
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["error_percent"] = 100 * (table["model_ms"] / table["measured_ms"] - 1)
    return table


def _of_treatment(
    treatment: TreatmentRecord, trials: pd.DataFrame, action_s: float
) -> dict[str, Any]:
    levels, users = treatment.levels, int(treatment.levels["users"])
    is_spread = levels["first_delay"] == "spread"
    users_beat = beat(users, float(levels["beat_s"]), action_s, is_spread)
    row = {"treatment": treatment.name, "users": users, "instants": len(users_beat.at_s)}
    if trials.empty:
        return {**row, "left_out": NO_TRIAL}
    cpu_s, rate = trials["cpu_us_per_message"] / 1e6, trials["messages_per_s"]
    burst = users_beat.users.max() / users * rate * action_s
    pairs = zip(rate, cpu_s, strict=True)
    model_ms = [1000 * computed_quantile(users_beat, per_s, cost_s) for per_s, cost_s in pairs]
    measured = across_trials(trials[RESPONSE].to_numpy(float))
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
        "no_overlap_ms": _typical(1000 * QUANTILE * burst * cpu_s),
        "model_ms": math.nan if left_out else _typical(model_ms),
        "measured_ms": measured.value,
        "low": measured.low,
        "high": measured.high,
        "n": measured.n,
        "left_out": left_out,
    }


def _typical(values: Any) -> float:
    return across_trials(np.asarray(values, dtype=float)).value


BURST_TITLE = "p90 of deliveries from CPU and bursts"
MEASURED, COMPUTED = "measured", "computed, nothing fitted"
ALONE = "0.9 B c, as if bursts never met"
P90, ERROR, MIDDLE = "p90", "error", "middle"
# An interval may reach this many times beyond the values.
BEYOND = 3.0
SHOWN = [
    "treatment", "no_overlap_ms", "model_ms", "measured_ms", "low", "high", "error_percent",
    "left_out",
]  # fmt: skip


def has_beats(run: Run) -> bool:
    """Return whether a run has rungs whose users act to a beat."""
    return "beat_s" in run.record.factors


def draw_bursts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw measured, computed and no-overlap p90 per treatment, and the error."""
    errors = table["error_percent"].astype(float).abs()
    widest = max(10.0, 1.15 * float(errors.fillna(0.0).max()))
    chart = RowChart(
        BURST_TITLE,
        "The k-th delivery of a burst waits k times the CPU of one;"
        f" {_error_words(errors.dropna())} Measured: while all users act, typical value over valid"
        " trials with its 95% interval (an arrow: it goes on).",
        layers=(
            Intervals((MEASURED,), at=0.15, beyond=BEYOND, among=(MEASURED,), size=9, lw=1.1,
                      label=MEASURED),
            Marks((COMPUTED,), "o", COMPUTED, color=PALETTE[0], hollow=True, at=-0.18),
            Marks((ALONE,), "x", ALONE, color=PALETTE[1], at=-0.18),
            Rules((MIDDLE,), ls="-"),
            Marks((ERROR,), "o", color=PALETTE[0]),
            Texts((ERROR,)),
        ),
        panels={
            P90: Axis("p90, ms (log)", log=True),
            ERROR: Axis("error, %", ends=(-widest, widest)),
        },
        row_in=0.3,
        widths=(2, 1),
    )  # fmt: skip
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each number of a treatment, with its panel."""
    treatments = table[["treatment"]]
    is_measured = np.isfinite(table["measured_ms"].astype(float))
    computed = treatments[is_measured].assign(panel=P90)
    errors = table["error_percent"]
    parts = [
        table[is_measured].assign(panel=P90, what=MEASURED, value=table["measured_ms"]),
        computed.assign(what=COMPUTED, value=table["model_ms"]).dropna(),
        computed.assign(what=ALONE, value=table["no_overlap_ms"]).dropna(),
        treatments.assign(panel=ERROR, what=ERROR, value=errors, words=table["left_out"]),
        pd.DataFrame([{"panel": ERROR, "what": MIDDLE, "value": 0.0, "treatment": ""}]),
    ]
    columns = ["panel", "what", "treatment", "value", "low", "high", "words"]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns).fillna({"words": ""})


def _error_words(errors: pd.Series[float]) -> str:
    if errors.empty:
        return "nothing can be computed of these rungs."
    return (
        f"error of {len(errors)} computed values: {errors.median():.0f}% in the middle,"
        f" {errors.max():.0f}% at most."
    )


BURSTS = View(
    "bursts", BURST_TITLE, lambda run: burst_model(run)[SHOWN], draw_bursts, suits=has_beats
)
