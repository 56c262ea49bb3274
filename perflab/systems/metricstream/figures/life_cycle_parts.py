"""The parts of one request as shares, on the client's clock, beside the published shares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from perflab.analysis.methods.quantiles import t_interval
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.intervals import draw_interval
from perflab.figures.looks import Look, luminance
from perflab.figures.origin import valid_counts
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.systems.metricstream.preset import OTHERS, STUDY
from perflab.systems.metricstream.request_parts import PARTS

TITLE = "what a request consists of, on the client's clock"
MEASURED, PUBLISHED, WHOLE = "measured", "published", "whole"
# What stands in the place of a bar.
NO_TRIAL, NO_POST = "no valid trial", "no answered post of the lab's client"
COLORS = {
    "connect": "#101840",
    "send": "#99CCEE",
    "wait": "#117766",
    "receive": "#F0DD88",
    "close": "#DC668A",
}
# The part of the study that a part stands for, and what the study calls it.
STATED = {"connect": "connection_setup", "wait": "processing", "close": "teardown"}
SHARES = "shares of one request, as stated"
# Which end of each published range a bar has: as little connecting as is stated, or as much.
ENDS = {
    "published: least connecting": {"connect": "low", "wait": "high", "close": "high"},
    "published: most connecting": {"connect": "high", "wait": "low", "close": "low"},
}
COLUMNS = ["what", "treatment", "part", "value", "low", "high", "n"]
BAR, SMALLEST = 0.6, 0.045
# The end of the axis where numbers stand beside bars, and where they stand above them.
ROOM, NARROW_ROOM = 1.55, 1.12


def parts_table(run: Run) -> pd.DataFrame:
    """Return the share of every part by treatment, then the published ones.

    ``value`` is the mean over the valid trials; of ``connect`` with its 95% t interval over them
    and their number; of ``whole`` it is the parts' sum in ms. A treatment without a valid trial has
    one row, which says so in place of a part. No rows where no trial has parts.
    """
    valid = run.valid_trials()
    if valid.empty or "part_connect_share" not in valid:
        return pd.DataFrame(columns=COLUMNS)
    found: list[dict[str, Any]] = []
    # Where another generator loads there are no posts of the lab's own to take apart.
    for name, own in valid.dropna(subset="part_connect_ms").groupby("treatment", sort=False):
        shares = [_share(str(name), part, own[f"part_{part}_share"]) for part in PARTS]
        whole_ms = own[[f"part_{part}_ms" for part in PARTS]].sum(axis=1, skipna=False).mean()
        whole = {"what": MEASURED, "treatment": name, "part": WHOLE, "value": float(whole_ms)}
        found += [*shares, whole]
    without = [
        {"what": NO_TRIAL, "treatment": name, "part": "", "n": 0}
        for name, trials in valid_counts(run).items()
        if not trials
    ]
    return pd.DataFrame([*found, *without, *_published()], columns=COLUMNS)


def _share(name: str, part: str, of_trials: pd.Series[float]) -> dict[str, Any]:
    row = {"what": MEASURED, "treatment": name, "part": part, "value": float(of_trials.mean())}
    if part != "connect":
        return row
    low, high = t_interval(of_trials.to_numpy(float))
    # Of few trials Student's interval may reach beyond what a share can be.
    return {**row, "low": max(low, 0.0), "high": min(high, 1.0), "n": len(of_trials)}


def _published() -> list[dict[str, Any]]:
    return [
        {
            "what": PUBLISHED,
            "treatment": name,
            "part": part,
            "value": published_value(STUDY, OTHERS, SHARES, f"{STATED[part]}_{end}") / 100,
        }
        for name, ends in ENDS.items()
        for part, end in ends.items()
    ]


def draw_parts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a stacked bar per treatment, and one for either end of the published ranges."""
    told = {name: Look(MUTED, "D", name) for name in ENDS if name in set(table["treatment"])}
    looks = {**page.looks, **told}
    parts = {name: table[table["treatment"] == name].set_index("part") for name in looks}
    said = {name: _said(own) for name, own in parts.items() if MEASURED in set(own["what"])}
    own_rows = rows.of_looks(looks, page.sheet, 0.36, said)
    where = own_rows.either(beside="At the right", above="Above a row")
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own_rows.height_in,
        subtitle=f"Mean shares of valid trials, successful requests. {where}: share of"
        " connecting with its 95% t interval over trials (drawn above the bar), and the parts' sum."
        " Published are ranges, of another machine, client and load; their upper ends exceed 100%.",
        key=[Patch(fc=color, label=_words(part)) for part, color in COLORS.items()],
    )
    axes = figure.subplots()
    for name, place in own_rows.frame(axes).items():
        own = parts[name]
        why = NO_POST if own.empty else str(own["what"].iloc[0])
        if why in (NO_POST, NO_TRIAL):
            axes.text(0.01, place, why, size=7.5, va="center", color=MUTED)
            continue
        _bar(axes, place, own)
        if name in said:
            own_rows.say(axes, name, 1.07, place, size=7, linespacing=1.2)
            _draw_interval(axes, place, own)
    axes.set_xlim(0, own_rows.either(beside=ROOM, above=NARROW_ROOM))
    axes.set_xticks(np.arange(0, 1.01, 0.2), [f"{share:.0%}" for share in np.arange(0, 1.01, 0.2)])
    axes.set_xlabel("share of a request's time", loc="left")
    only_grid(axes, "x")
    return finish(figure)


def _words(part: str) -> str:
    if part == "send":
        return "send, or wait for a free connection"
    return f"{part} (published: {STATED[part].replace('_', ' ')})" if part in STATED else part


def _bar(axes: Axes, place: float, own: pd.DataFrame) -> None:
    left = 0.0
    for part, color in COLORS.items():
        value = float(own["value"].get(part, math.nan))
        if not value > 0:
            continue
        axes.barh(place, value, left=left, height=BAR, color=color, edgecolor="white", lw=0.6)
        if value > SMALLEST:
            light = luminance(color) >= 0.55
            axes.text(left + value / 2, place, f"{value:.0%}", size=7, ha="center", va="center",
                      color=INK if light else "white")  # fmt: skip
        left += value


def _said(own: pd.DataFrame) -> str:
    """Return the share of connecting with its interval, and what all parts take."""
    value, low, high, n = _connecting(own)
    ends = f" [{low:.1%}, {high:.1%}]" if math.isfinite(low) else ", no interval"
    return f"connect {value:.1%}{ends}\n{own['value'][WHOLE]:.3g} ms, n = {n:.0f}"


def _connecting(own: pd.DataFrame) -> list[float]:
    names = ("value", "low", "high", "n")
    return [float(own[name].get("connect", math.nan)) for name in names]


def _draw_interval(axes: Axes, place: float, own: pd.DataFrame) -> None:
    _, low, high, _ = _connecting(own)
    draw_interval(axes, (low, high), place - BAR / 2 - 0.07, (0.0, 1.0), color=INK, lw=1.5,
                  zorder=4)  # fmt: skip


def has_connections(run: Run) -> bool:
    """Return whether a run is of connections of this system."""
    return {"rung", "connection", "keep_alive"} <= set(run.record.factors)


LIFE_CYCLE_PARTS = View("life_cycle_parts", TITLE, parts_table, draw_parts, suits=has_connections)
