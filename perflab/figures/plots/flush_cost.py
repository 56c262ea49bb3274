"""The disk's flush cost over the run, with the commits that waited for it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import Look
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.points import draw_points
from perflab.figures.theme import FAINT, MUTED
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.recordings import Run

TITLE = "cost of a disk flush over the run, and the commits of the trials"
FLUSH, MIDDLE, COMMIT = "flush", "median flush", "median commit"
COLUMNS = ["what", "order", "block", "treatment", "state", "ms"]


def flush_cost_table(run: Run) -> pd.DataFrame:
    """Return what a flush took: every one measured around a trial, and their median, in ms.

    And the trial's median commit phase, with treatment and state. ``order`` numbers the trials as
    they ran.
    """
    trials = _measured(run)
    if not len(trials):
        return pd.DataFrame(columns=COLUMNS)
    every = trials[["order", "block", "flush_us"]].explode("flush_us", ignore_index=True)
    every = every.assign(what=FLUSH, ms=every["flush_us"].astype(float) / 1e3)
    middle = every.groupby(["order", "block"], as_index=False)["ms"].median().assign(what=MIDDLE)
    commits = trials.assign(what=COMMIT, ms=trials["trial_id"].map(_commit_medians(run)))
    commits = commits.astype({"ms": float})
    commits = commits[commits["ms"] > 0]
    found: pd.DataFrame = pd.concat([every, middle, commits], ignore_index=True)[COLUMNS]
    return found


def has_flushes(run: Run) -> bool:
    """Return whether the run measured what a flush takes: it has a database."""
    return len(_measured(run)) > 0


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


def draw_flush_cost(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw every measured flush by trial in run order, and each trial's median commit phase."""
    flushes, middles, commits = (table[table["what"] == what] for what in (FLUSH, MIDDLE, COMMIT))
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.3),
        subtitle="Grey: single flushes on the database's file system, measured around each trial;"
        " bar: their median. Coloured: the trial's median commit phase as the service reports it"
        f"{_hollow(commits)}.",
        key=_key(page.looks, set(commits["treatment"])),
    )
    axes = figure.subplots()
    axes.plot(_spread(flushes), flushes["ms"], ls="", marker="o", ms=2.2, mfc=MUTED, mec="none",
              alpha=0.55)  # fmt: skip
    axes.hlines(middles["ms"], middles["order"] - 0.4, middles["order"] + 0.16, color=MUTED, lw=1.6)
    beside = commits.assign(order=commits["order"] + 0.3)
    draw_points(axes, beside, "order", "ms", "treatment", page.looks, s=25, linewidth=0.5, zorder=4)
    _mark_blocks(axes, middles)
    axes.set_ylabel("time, ms (log)")
    axes.set_xlabel("block (trials in the order they ran)")
    log_axis(axes, "y")
    only_grid(axes, "y")
    return finish(figure)


def _spread(flushes: pd.DataFrame) -> pd.Series[float]:
    """Return where the flushes of a trial stand side by side, in the order they were made."""
    groups = flushes.groupby("order")["ms"]
    place, most = groups.cumcount(), groups.transform("size") - 1
    return flushes["order"] - 0.32 + 0.4 * place / most.clip(lower=1)


def _mark_blocks(axes: Axes, trials: pd.DataFrame) -> None:
    spans = trials.groupby("block")["order"].agg(["min", "max"])
    for start in spans["min"].iloc[1:]:
        axes.axvline(start - 0.5, color=FAINT, lw=0.8, zorder=0)
    every = -(-len(spans) // 15)
    middles = (spans["min"] + spans["max"]) / 2
    axes.set_xticks(list(middles)[::every], [str(block) for block in spans.index][::every])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(trials["order"].min() - 0.6, trials["order"].max() + 0.8)


def _key(looks: Mapping[str, Look], shown: set[str]) -> list[Line2D]:
    flush = Line2D([], [], color=MUTED, lw=1.6, label="median disk flush")
    commits = [
        Line2D([], [], ls="", marker=each.marker, ms=5, mfc=each.color, mec=each.color,
               label=tick_label(each.label, 6.4, 8, lines=1))
        for name, each in looks.items()
        if name in shown
    ]  # fmt: skip
    return [flush, *commits]


def _hollow(commits: pd.DataFrame) -> str:
    """Explain the hollow markers where there are any."""
    hollow = (commits["state"] != "valid").any()
    return ", hollow where the trial does not count" if hollow else ""


FLUSH_COST = View("flush_cost", TITLE, flush_cost_table, draw_flush_cost, suits=has_flushes)
