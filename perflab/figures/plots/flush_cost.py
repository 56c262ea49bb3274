"""The disk's flush cost over the run, with the commits that waited for it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.looks import Look, looks
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import FAINT, MUTED, styled
from perflab.figures.words import tick_label
from perflab.recordings import Run

COLUMNS = [
    "order",
    "trial_id",
    "block",
    "treatment",
    "label",
    "state",
    "flushes",
    "flush_min_ms",
    "flush_p50_ms",
    "flush_max_ms",
    "commit_p50_ms",
]


def table(run: Run) -> pd.DataFrame:
    """Return one row per measured trial in run order; empty where no flush was measured."""
    trials = _measured(run)
    if not len(trials):
        return pd.DataFrame(columns=COLUMNS)
    labels = {name: look.label for name, look in looks(run.record).items()}
    flushes = [np.asarray(values, float) / 1e3 for values in trials["flush_us"]]
    return trials.assign(
        label=trials["treatment"].map(labels),
        flushes=[len(values) for values in flushes],
        flush_min_ms=[values.min() for values in flushes],
        flush_p50_ms=[np.median(values) for values in flushes],
        flush_max_ms=[values.max() for values in flushes],
        commit_p50_ms=trials["trial_id"].map(_commit_medians(run)).astype(float),
    )[COLUMNS]


@styled
def flush_cost(run: Run) -> Figure | None:
    """Draw every measured flush by trial in run order, and each trial's median commit phase.

    Returns
    -------
    Figure or None
        None where the run has no database, hence no flush to measure.
    """
    trials = _measured(run)
    if not len(trials):
        return None
    look = looks(run.record)
    drawn = table(run)
    figure = canvas_of(
        run,
        "cost of a disk flush over the run, and the commits of the trials",
        plot_height_in=3.3,
        subtitle="Grey: single flushes on the database's file system, measured around each trial;"
        " bar: their median. Coloured: the trial's median commit phase as the service reports it"
        f"{_hollow(drawn)}.",
        key=_key(look, drawn),
    )
    axes = figure.subplots()
    for order, values in zip(trials["order"], trials["flush_us"], strict=True):
        _draw_flushes(axes, int(order), np.asarray(values, float) / 1e3)
    for name, group in drawn.groupby("treatment", sort=False):
        _draw_commits(axes, group, look[str(name)])
    _mark_blocks(axes, drawn)
    axes.set_ylabel("time, ms (log)")
    axes.set_xlabel("block (trials in the order they ran)")
    log_axis(axes, "y")
    only_grid(axes, "y")
    return finish(figure)


def _measured(run: Run) -> pd.DataFrame:
    """Return the trials that hold a flush measurement, numbered in the order they ran."""
    trials = run.trials()
    if "flush_us" not in trials:
        return trials.iloc[:0]
    trials = trials[~trials["superseded"].astype(bool)].sort_values("begin_ns", ignore_index=True)
    trials = trials.assign(order=np.arange(1, len(trials) + 1))
    # A trial that failed before its probe has no list at all.
    return trials[[np.size(values) > 0 and np.ndim(values) == 1 for values in trials["flush_us"]]]


def _commit_medians(run: Run) -> dict[str, float]:
    requests = run.requests(trial_ids=list(run.trials()["trial_id"]))
    if not len(requests) or "phase_commit_ms" not in requests:
        return {}
    good = requests[requests["error"] == ""]
    medians = good.groupby("trial_id")["phase_commit_ms"].median()
    return {str(trial): float(value) for trial, value in medians.items()}


def _draw_flushes(axes: Axes, order: int, flushes_ms: np.ndarray) -> None:
    # Spread by index, not at random: the same record gives the same picture.
    spread = order - 0.12 + np.linspace(-0.2, 0.2, len(flushes_ms))
    axes.plot(spread, flushes_ms, ls="", marker="o", ms=2.2, mfc=MUTED, mec="none", alpha=0.55)
    middle = float(np.median(flushes_ms))
    axes.plot([order - 0.4, order + 0.16], [middle] * 2, color=MUTED, lw=1.6)


def _draw_commits(axes: Axes, trials: pd.DataFrame, look: Look) -> None:
    for state, fill in (("valid", look.color), ("invalid", "white"), ("failed", "white")):
        chosen = trials[(trials["state"] == state) & (trials["commit_p50_ms"] > 0)]
        axes.plot(
            chosen["order"] + 0.3,
            chosen["commit_p50_ms"],
            ls="",
            marker=look.marker,
            ms=5,
            mfc=fill,
            mec=look.color,
            mew=1.0,
            zorder=4,
        )


def _mark_blocks(axes: Axes, trials: pd.DataFrame) -> None:
    spans = trials.groupby("block")["order"].agg(["min", "max"])
    for start in spans["min"].iloc[1:]:
        axes.axvline(start - 0.5, color=FAINT, lw=0.8, zorder=0)
    every = -(-len(spans) // 15)
    middles = (spans["min"] + spans["max"]) / 2
    axes.set_xticks(list(middles)[::every], [str(block) for block in spans.index][::every])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(trials["order"].min() - 0.6, trials["order"].max() + 0.8)


def _key(look: dict[str, Look], trials: pd.DataFrame) -> list[Line2D]:
    flush = Line2D([], [], color=MUTED, lw=1.6, label="median disk flush")
    with_commit = set(trials.loc[trials["commit_p50_ms"] > 0, "treatment"])
    commits = [
        Line2D(
            [],
            [],
            ls="",
            marker=each.marker,
            ms=5,
            mfc=each.color,
            mec=each.color,
            label=tick_label(each.label, 6.4, 8, lines=1),
        )
        for name, each in look.items()
        if name in with_commit
    ]
    return [flush, *commits]


def _hollow(trials: pd.DataFrame) -> str:
    """Explain the hollow markers where there are any."""
    hollow = (trials["state"] != "valid") & (trials["commit_p50_ms"] > 0)
    return ", hollow where the trial does not count" if hollow.any() else ""
