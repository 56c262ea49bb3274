"""Total duration over the threads of the executor, with what batches over the link would take."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import trials_shown
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.points import draw_points
from perflab.figures.theme import MUTED
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "how many threads 100 downloads need"
TRIAL, BATCHES = "trial", "batches"
COLUMNS = ["what", "threads", "state", "duration_s"]
LOOKS = {TRIAL: Look(PALETTE[0], "o", "trial: until the last download was there")}
OWN_EXECUTOR = "executor"


def thread_table(run: Run) -> pd.DataFrame:
    """Return the total duration of every trial with an own executor, by its threads.

    ``state`` is the trial's; of one in which downloads timed out ``duration_s`` is what it is at
    least, and its state says so (``timed out``). ``what`` ``batches`` is the curve of downloads /
    threads, rounded up, times what the model takes over one connection of the link.
    """
    trials = trials_shown(run)
    own = trials[
        (trials["factor_handler"] == OWN_EXECUTOR)
        & (trials["factor_body"] == "buffered")
        & (trials["factor_clients"] == str(run.record.parameters["clients"]))
    ]
    if own.empty or own["factor_executor_threads"].nunique() < 2:
        return pd.DataFrame(columns=COLUMNS)
    at_least = own.get("total_duration_s_at_least", pd.Series(np.nan, index=own.index))
    known = own["total_duration_s"].astype(float)
    points = pd.DataFrame(
        {
            "what": TRIAL,
            "threads": own["factor_executor_threads"].astype(float),
            "state": own["state"].where(known.notna(), "timed out"),
            "duration_s": known.fillna(at_least.astype(float)),
        }
    )
    return pd.concat([points, _batches(run, points["threads"])], ignore_index=True)[COLUMNS]


def _batches(run: Run, threads: pd.Series[float]) -> pd.DataFrame:
    parameters = run.record.parameters
    rate = parameters["bytes_per_s"]
    if rate == "unlimited":
        return pd.DataFrame(columns=COLUMNS)
    each_s = float(parameters["model_bytes"]) / float(rate)
    places = np.arange(int(threads.min()), int(threads.max()) + 1)
    batches = [math.ceil(int(parameters["clients"]) / int(place)) for place in places]
    return pd.DataFrame(
        {"what": BATCHES, "threads": places, "duration_s": np.array(batches) * each_s}
    )


def draw_threads(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw trials as points, and the curve of batches."""
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=3.2,
        subtitle="Hollow: refused, or downloads timed out and it would have taken longer. Line:"
        " downloads / threads, rounded up, times the seconds that the model takes over one"
        " connection of the link; nothing is fitted.",
        key=[
            Line2D([], [], ls="", marker="o", ms=4, color=PALETTE[0], label=LOOKS[TRIAL].label),
            Line2D([], [], color=MUTED, lw=1.2, label="batches over the link alone"),
        ],
    )
    axes = figure.subplots()
    curve = table[table["what"] == BATCHES]
    axes.plot(curve["threads"], curve["duration_s"], color=MUTED, lw=1.2, zorder=1)
    draw_points(axes, table[table["what"] == TRIAL], "threads", "duration_s", "what", LOOKS, s=22)
    log_axis(axes, "x")
    log_axis(axes, "y")
    axes.set_xlabel("threads of the executor (log)")
    axes.set_ylabel("total duration, s (log)")
    only_grid(axes, "y")
    return finish(figure)


def has_threads(run: Run) -> bool:
    """Return whether a run compares sizes of an own executor."""
    record = run.record
    sizes = {
        item.levels.get("executor_threads")
        for item in record.treatments
        if item.levels.get("handler") == OWN_EXECUTOR
    }
    return "handler" in record.factors and len(sizes) > 1


THREAD_CURVE = View("thread_curve", TITLE, thread_table, draw_threads, suits=has_threads)
