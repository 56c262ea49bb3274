"""The burst model beside what was measured: is latency what a burst's deliveries cost, in line?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.intervals import draw_interval, reach
from perflab.figures.looks import PALETTE
from perflab.figures.nothing import empty_figure
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.figures.words import wrap
from perflab.recordings import Run
from perflab.systems.chat.analysis.bursts import burst_model

TITLE = "p90 of deliveries from CPU and bursts"
# An interval may reach so many times beyond the values.
BEYOND = 3.0
# Room for why there is no prediction.
WORDS_IN, NARROW_WORDS_IN = 2.2, 0.9
SHOWN = [
    "treatment", "no_overlap_ms", "predicted_ms", "measured_ms", "low", "high", "error_percent",
    "left_out",
]  # fmt: skip


def bursts_table(run: Run) -> pd.DataFrame:
    """Return of :func:`burst_model` what is drawn."""
    return burst_model(run)[SHOWN]


def has_beats(run: Run) -> bool:
    """Return whether a run has rungs whose users act to a beat."""
    return "beat_s" in run.record.factors


def draw_bursts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw measured, predicted and no-overlap p90 per treatment, and the error."""
    if not np.isfinite(table["measured_ms"].astype(float)).any():
        return empty_figure(page, TITLE, page.nothing)
    own_rows = rows.of_looks(page.looks, page.sheet, 0.3)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.7 + own_rows.height_in,
        subtitle=f"The k-th delivery of a burst waits k times the CPU of one; {_said(table)}"
        " Measured: while all users act, typical value over valid trials with its 95% interval"
        " (an arrow: it goes on).",
        key=_key(),
    )
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(2, 1))
    places = own_rows.frame(left)
    own_rows.frame(right)
    _draw_ms(left, table.assign(y=table["treatment"].map(places)))
    room_in = own_rows.either(beside=WORDS_IN, above=NARROW_WORDS_IN)
    _draw_errors(right, table.assign(y=table["treatment"].map(places)), room_in)
    for axes in (left, right):
        own_rows.rules(axes)
        only_grid(axes, "x")
    return finish(figure)


def _said(table: pd.DataFrame) -> str:
    errors = table["error_percent"].astype(float).abs().dropna()
    if errors.empty:
        return "too few rungs to predict one from the others."
    return (
        "a rung's prediction has one factor, that of the other rungs. Error of"
        f" {len(errors)} predictions: {errors.median():.0f}% in the middle, {errors.max():.0f}%"
        " at most."
    )


def _draw_ms(axes: Axes, table: pd.DataFrame) -> None:
    known = table[np.isfinite(table["measured_ms"].astype(float))]
    within = reach(known["measured_ms"], BEYOND)
    for each in known.to_dict("records"):
        axes.plot([each["measured_ms"]] * 2, [each["y"] - 0.02, each["y"] + 0.32], color=INK, lw=2)
        ends = float(each["low"]), float(each["high"])
        draw_interval(axes, ends, each["y"] + 0.15, within, color=INK, lw=1.1)
    axes.plot(known["no_overlap_ms"], known["y"] - 0.18, ls="", marker="x", ms=5, mew=1.3,
              color=PALETTE[1])  # fmt: skip
    axes.plot(known["predicted_ms"], known["y"] - 0.18, ls="", marker="o", ms=5, mfc="white",
              mec=PALETTE[0], mew=1.4)  # fmt: skip
    log_axis(axes, "x")
    axes.set_xlabel("p90, ms (log)")


def _draw_errors(axes: Axes, table: pd.DataFrame, room_in: float) -> None:
    known = table[np.isfinite(table["error_percent"].astype(float))]
    axes.axvline(0, color=MUTED, lw=1)
    axes.plot(known["error_percent"], known["y"], ls="", marker="o", ms=5, color=PALETTE[0])
    widest = max(10.0, 1.15 * float(known["error_percent"].abs().max())) if len(known) else 10.0
    axes.set_xlim(-widest, widest)
    for each in table[table["left_out"] != ""].to_dict("records"):
        words = "\n".join(wrap(str(each["left_out"]), 7, room_in))
        axes.text(0.5, each["y"], words, ha="center", va="center", color=MUTED,
                  fontsize=7, transform=axes.get_yaxis_transform(),
                  bbox={"fc": "white", "ec": "none", "pad": 1})  # fmt: skip
    axes.set_xlabel("error, %")


def _key() -> list[Line2D]:
    return [
        Line2D([], [], color=INK, lw=2, label="measured"),
        Line2D([], [], ls="", marker="o", ms=5, mfc="white", mec=PALETTE[0], mew=1.4,
               label="predicted from the other rungs"),
        Line2D([], [], ls="", marker="x", ms=5, mew=1.3, color=PALETTE[1],
               label="0.9 B c, as if bursts never met"),
    ]  # fmt: skip


BURSTS = View("bursts", TITLE, bursts_table, draw_bursts, suits=has_beats)
