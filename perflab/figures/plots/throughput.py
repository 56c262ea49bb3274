"""Throughput of every trial, block by block, with the treatments' medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from perflab.analysis import Estimate
from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.compared import compared
from perflab.figures.evidence import in_words, statistic, typical_values
from perflab.figures.looks import Look, looks
from perflab.figures.nothing import empty_figure
from perflab.figures.plots import rows
from perflab.figures.theme import FAINT, INK, MUTED, styled
from perflab.recordings import Run

TITLE = "throughput per treatment"
BAND = (-0.34, 0.12)
TYPICAL_AT = 0.32
COLUMNS = [
    "treatment",
    "label",
    "block",
    "position",
    "attempt",
    "trial_id",
    "state",
    "reasons",
    "throughput_rps",
]


def table(run: Run) -> pd.DataFrame:
    """Return one row per trial that was not superseded, failed and invalid ones included."""
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    labels = {name: look.label for name, look in looks(run.record).items()}
    reasons = ["; ".join(map(str, given)) for given in trials["reasons"]]
    return (
        trials.assign(label=trials["treatment"].map(labels), reasons=reasons)
        .reindex(columns=COLUMNS)
        .astype({"throughput_rps": float})
        .sort_values(["block", "position", "attempt"], ignore_index=True)
    )


@styled
def throughput(run: Run) -> Figure:
    """Draw each trial's throughput by treatment; lines join the trials of a block."""
    look = looks(run.record)
    trials = table(run)
    typical = typical_values(run, "throughput_rps")
    if not np.isfinite(trials["throughput_rps"]).any():
        return empty_figure(run, TITLE)
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=0.55 + len(look) * rows.height_in(look, 0.62),
        subtitle="Every point is one trial, the first block on top; a grey line joins two trials of"
        " one block that are compared.",
        key=_key(set(trials["state"]), [each for each in typical.values() if each.n > 1]),
    )
    axes = figure.subplots()
    places = rows.frame(axes, look)
    trials = trials.assign(y=_heights(trials, places))
    _join_blocks(axes, trials, compared(run.record))
    for name, group in trials.groupby("treatment", sort=False):
        _draw_trials(axes, group, look[str(name)])
    for name, estimate in typical.items():
        _draw_typical(axes, places[name] + TYPICAL_AT, estimate, look[name])
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("throughput, successful responses per second")
    only_grid(axes, "x")
    return finish(figure)


def _heights(trials: pd.DataFrame, places: dict[str, int]) -> pd.Series[float]:
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


def _draw_trials(axes: Axes, trials: pd.DataFrame, look: Look) -> None:
    measured = np.isfinite(trials["throughput_rps"])
    valid = trials[(trials["state"] == "valid") & measured]
    invalid = trials[(trials["state"] == "invalid") & measured]
    failed = trials[(trials["state"] == "failed") | ~measured]
    points: dict[str, Any] = {"marker": look.marker, "s": 22, "edgecolors": look.color, "zorder": 3}
    axes.scatter(valid["throughput_rps"], valid["y"], c=look.color, linewidths=0.5, **points)
    axes.scatter(invalid["throughput_rps"], invalid["y"], c="white", linewidths=1.1, **points)
    axes.scatter(
        [0.0] * len(failed),
        failed["y"],
        marker="x",
        s=16,
        c=look.color,
        linewidths=1.4,
        transform=axes.get_yaxis_transform(),
        clip_on=False,
        zorder=4,
    )


def _draw_typical(axes: Axes, y: float, estimate: Estimate, look: Look) -> None:
    axes.text(
        1.015,
        y - 0.18,
        in_words(estimate, "{:,.0f}"),
        transform=axes.get_yaxis_transform(),
        size=8,
        va="center",
        linespacing=1.35,
    )
    if estimate.supported:
        axes.plot([estimate.low, estimate.high], [y, y], color=look.color, lw=2.2, zorder=2)
    if estimate.n > 1:
        axes.plot([estimate.value] * 2, [y - 0.1, y + 0.1], color=INK, lw=1.6, zorder=3)


def _key(states: set[str], typical: Sequence[Estimate]) -> list[Line2D]:
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
    statistics = {statistic(each) for each in typical}
    both = "median (n < 6: geometric mean)"
    name = both if len(statistics) > 1 else "".join(statistics)
    label = f"{name} and its 95% interval"
    return [*handles, Line2D([], [], label=label, **median)] if statistics else handles
