"""The burst model beside what was measured: is latency what a burst's deliveries cost, in line?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, RowChart, Rules, Texts
from perflab.figures.looks import PALETTE
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.bursts import burst_model

TITLE = "p90 of deliveries from CPU and bursts"
MEASURED, COMPUTED = "measured", "computed, nothing fitted"
ALONE = "0.9 B c, as if bursts never met"
P90, ERROR, MIDDLE = "p90", "error", "middle"
# An interval may reach so many times beyond the values.
BEYOND = 3.0
SHOWN = [
    "treatment", "no_overlap_ms", "model_ms", "measured_ms", "low", "high", "error_percent",
    "left_out",
]  # fmt: skip


def bursts_table(run: Run) -> pd.DataFrame:
    """Return of :func:`burst_model` what is drawn."""
    return burst_model(run)[SHOWN]


def has_beats(run: Run) -> bool:
    """Return whether a run has rungs whose users act to a beat."""
    return "beat_s" in run.record.factors


def draw_bursts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw measured, computed and no-overlap p90 per treatment, and the error."""
    errors = table["error_percent"].astype(float).abs()
    widest = max(10.0, 1.15 * float(errors.fillna(0.0).max()))
    chart = RowChart(
        TITLE,
        f"The k-th delivery of a burst waits k times the CPU of one; {_said(errors.dropna())}"
        " Measured: while all users act, typical value over valid trials with its 95% interval (an"
        " arrow: it goes on).",
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
    own, nothing = table[["treatment"]], {"low": np.nan, "high": np.nan}
    known = np.isfinite(table["measured_ms"].astype(float))
    parts = [
        table[known].assign(panel=P90, what=MEASURED, value=table["measured_ms"]),
        own.assign(panel=P90, what=COMPUTED, value=table["model_ms"]).where(known).dropna(),
        own.assign(panel=P90, what=ALONE, value=table["no_overlap_ms"]).where(known).dropna(),
        own.assign(panel=ERROR, what=ERROR, value=table["error_percent"], words=table["left_out"]),
        pd.DataFrame([{"panel": ERROR, "what": MIDDLE, "value": 0.0, "treatment": ""}]),
    ]
    columns = ["panel", "what", "treatment", "value", *nothing, "words"]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns).fillna({"words": ""})


def _said(errors: pd.Series[float]) -> str:
    if errors.empty:
        return "nothing can be computed of these rungs."
    return (
        f"error of {len(errors)} computed values: {errors.median():.0f}% in the middle,"
        f" {errors.max():.0f}% at most."
    )


BURSTS = View("bursts", TITLE, bursts_table, draw_bursts, suits=has_beats)
