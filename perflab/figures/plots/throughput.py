"""Throughput of every trial, block by block, with the treatments' typical values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import TYPICAL, in_words, typical_rows
from perflab.figures.intervals import ARROW, draw_interval, reach
from perflab.figures.looks import Look
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.plots.published_marks import (
    PUBLISHED,
    Published,
    draw_published,
    nothing_published,
    published_key,
)
from perflab.figures.points import draw_points
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "throughput per treatment, every trial a point"
SUBTITLE = (
    "Every point is one trial, the first block on top; a grey line joins two trials of one block"
    " that are compared."
)
TRIAL = "trial"
BAND = (-0.34, 0.12)
TYPICAL_AT = 0.32
# An interval may reach so many times beyond the fastest trial.
BEYOND = 1.3
COLUMNS = ["what", "treatment", "block", "state", "throughput_rps", "low", "high", "n"]


def throughput_table(run: Run, published: Published = nothing_published) -> pd.DataFrame:
    """Return the trials that were not superseded, and the typical value of each treatment.

    Failed and invalid trials are there too, with their state; ``what`` is "trial", or which
    statistic a typical value is, with its 95% interval and its number of trials; or "published",
    with the load in place of the state. No rows where no trial has a throughput.
    """
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    if "throughput_rps" not in trials or not np.isfinite(trials["throughput_rps"]).any():
        return pd.DataFrame(columns=COLUMNS)
    typical = typical_rows(run, "throughput_rps").rename(columns={"value": "throughput_rps"})
    trials = trials.assign(what=TRIAL).sort_values(["block", "position", "attempt"])
    named = {"value": "throughput_rps", "load": "state"}
    absolutes = published(run, "throughput_rps").rename(columns=named).assign(what=PUBLISHED)
    shown = [each for each in (trials, typical, absolutes) if len(each)]
    return pd.concat(shown, ignore_index=True).reindex(columns=COLUMNS)


def draw_throughput(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each trial's throughput by treatment; lines join the trials of a block."""
    trials, typical = table[table["what"] == TRIAL], table[table["what"].isin(TYPICAL)]
    known = typical.rename(columns={"throughput_rps": "value"}).to_dict("records")
    said = {str(each["treatment"]): in_words(each, "{:,.0f}") for each in known}
    own = rows.of_looks(page.looks, page.sheet, 0.62, said)
    within = 0.0, reach(trials["throughput_rps"], BEYOND)[1]
    leaves = (typical["high"] > within[1]).any()
    published = table[table["what"] == PUBLISHED]
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.55 + own.height_in,
        subtitle=" ".join([SUBTITLE, *([ARROW] if leaves else [])]),
        key=[
            *_key(set(trials["state"]), set(typical.loc[typical["n"] > 1, "what"])),
            *published_key(published),
        ],
    )
    axes = figure.subplots()
    places = own.frame(axes)
    trials = trials.assign(y=_heights(trials, places))
    _join_blocks(axes, trials, page.pairs)
    draw_points(axes, trials[trials["state"] != "failed"], "throughput_rps", "y", "treatment",
                page.looks, s=22)  # fmt: skip
    _draw_failed(axes, trials, page.looks)
    for each in known:
        name = str(each["treatment"])
        y = places[name] + TYPICAL_AT
        own.say(axes, name, 1.015, y - 0.18, size=8, linespacing=1.35,
                transform=axes.get_yaxis_transform())  # fmt: skip
        _draw_typical(axes, y, each, page.looks[name], within)
    heights = {name: place + TYPICAL_AT for name, place in places.items()}
    draw_published(axes, published, "throughput_rps", heights)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("throughput, successful responses per second")
    only_grid(axes, "x")
    return finish(figure)


def _heights(trials: pd.DataFrame, places: Mapping[str, float]) -> pd.Series[float]:
    """Spread a treatment's trials over its row by block, the first block on top."""
    blocks = sorted(trials["block"].unique())
    span = (
        np.linspace(*BAND, len(blocks)) if len(blocks) > 1 else np.full(len(blocks), sum(BAND) / 2)
    )
    offset = dict(zip(blocks, span, strict=True))
    return trials["treatment"].map(places).astype(float) + trials["block"].map(offset).astype(float)


def _join_blocks(axes: Axes, trials: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> None:
    """Join what a claim compares; only valid trials, for only they enter a comparison."""
    valid = trials[(trials["state"] == "valid") & np.isfinite(trials["throughput_rps"])]
    points = {
        (block, name): (x, y)
        for block, name, x, y in zip(
            valid["block"], valid["treatment"], valid["throughput_rps"], valid["y"], strict=True
        )
    }
    lines = [
        [points[block, one], points[block, other]]
        for block in valid["block"].unique()
        for one, other in pairs
        if (block, one) in points and (block, other) in points
    ]
    axes.add_collection(LineCollection(lines, colors=FAINT, linewidths=0.9, zorder=1))


def _draw_failed(axes: Axes, trials: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Mark trials without a throughput at the axis."""
    failed = trials[(trials["state"] == "failed") | ~np.isfinite(trials["throughput_rps"])]
    axes.scatter(
        [0.0] * len(failed),
        failed["y"],
        marker="x",
        s=16,
        c=[looks[name].color for name in failed["treatment"]],
        linewidths=1.4,
        transform=axes.get_yaxis_transform(),
        clip_on=False,
        zorder=4,
    )


def _draw_typical(
    axes: Axes,
    y: float,
    typical: Mapping[Hashable, Any],
    look: Look,
    within: tuple[float, float],
) -> None:
    interval = float(typical["low"]), float(typical["high"])
    draw_interval(axes, interval, y, within, arrow_pt=5.0, color=look.color, lw=2.2, zorder=2)
    if typical["n"] > 1:
        axes.plot([typical["value"]] * 2, [y - 0.1, y + 0.1], color=INK, lw=1.6, zorder=3)


def _key(states: set[str], statistics: set[str]) -> list[Line2D]:
    point: dict[str, Any] = {"ls": "", "ms": 4.5, "mec": MUTED}
    handles = [Line2D([], [], marker="o", mfc=MUTED, label="valid trial", **point)]
    if "invalid" in states:
        label = "invalid trial (not compared)"
        handles.append(Line2D([], [], marker="o", mfc="white", label=label, **point))
    if "failed" in states:
        label = "failed trial (not compared)"
        handles.append(Line2D([], [], marker="x", mew=1.4, label=label, **point))
    median: dict[str, Any] = {
        "color": MUTED,
        "lw": 2.2,
        "marker": "|",
        "ms": 8,
        "mec": INK,
        "mew": 1.6,
    }
    both = "median (n < 6: geometric mean)"
    name = both if len(statistics) > 1 else "".join(statistics)
    label = f"{name} and its 95% interval"
    return [*handles, Line2D([], [], label=label, **median)] if statistics else handles


def throughput_view(published: Published = nothing_published) -> View:
    """Return the view, with what a system has published absolutes of."""
    return View(
        "throughput", TITLE, partial(throughput_table, published=published), draw_throughput
    )


THROUGHPUT = throughput_view()
