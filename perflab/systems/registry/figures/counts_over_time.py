"""What the service counts over a trial: who waits, who works, connections, memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.numerals import counted
from perflab.recordings import Run
from perflab.systems.registry.figures.waterfall import has_downloads
from perflab.systems.registry.registry_counts import TABLE

TITLE = "queue, threads, connections and memory over a trial"
PANELS = {
    "in_flight": "downloads\nin flight",
    "waiting_for_thread": "waiting for\na thread",
    "working_threads": "working\nthreads",
    "store_created": "store\nconnections,\nopened so far",
    "store_discarded": "of these\nthrown away",
    "memory_mb": "memory,\nMB (10^6)",
}
COLUMNS = ["treatment", "t_s", "answered", *PANELS]
MB = 1e6
PANEL_IN = 0.95
# Names of counts stand at the side.
LEAST_IN = 0.78
# More lines than colours could not be told apart.
MOST = 8


def counts_table(run: Run) -> pd.DataFrame:
    """Return the counts of each treatment's first valid trial, in seconds since its load began.

    Where the service did not answer a question (``answered`` is ``no``) its numbers are NaN.
    """
    valid = run.valid_trials()
    if valid.empty:
        return pd.DataFrame(columns=COLUMNS)
    firsts = valid.sort_values("block").groupby("treatment", sort=False)["trial_id"].first()
    counts = run.table(TABLE, list(firsts))
    begins = run.requests(trial_ids=list(firsts)).groupby("trial_id")["planned_ns"].min()
    since_ns = counts["t_ns"] - counts["trial_id"].map(begins)
    took_ns = (counts["answered_ns"] - counts["t_ns"]).where(counts["answered_ns"] > 0)
    found = counts.assign(
        # What is told is that of the instant of the answer, not of the question.
        t_s=(since_ns + took_ns.fillna(0)) / 1e9,
        answered=np.where(took_ns.notna(), "yes", "no"),
        memory_mb=counts["rss_bytes"] / MB,
    )
    return found[COLUMNS].reset_index(drop=True)


def draw_counts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel per count, a line per treatment; a line has gaps where nobody answered."""
    measured = {name: look for name, look in page.looks.items() if name in set(table["treatment"])}
    shown = dict([*measured.items()][:MOST])
    silent = [
        look.label
        for name, look in shown.items()
        if (table[table["treatment"] == name]["answered"] != "yes").any()
    ]
    said = f" Did not answer for a while: {'; '.join(silent)}." if silent else ""
    if left_out := len(measured) - len(shown):
        said += f" Not drawn, but in the table: {counted(left_out, 'further treatment')}."
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.4 + max(LEAST_IN, page.sheet.height_in(PANEL_IN)) * len(PANELS),
        subtitle="Each treatment's first valid trial, asked five times a second. A line is broken"
        f" where the service did not answer.{said}",
        key=[
            Line2D([], [], color=look.color, marker=look.marker, ms=3.5, lw=1.2, label=look.label)
            for look in shown.values()
        ],
    )
    panels = figure.subplots(len(PANELS), 1, sharex=True)
    for axes, (name, words) in zip(panels, PANELS.items(), strict=True):
        axes.set_ylabel(words, fontsize=7.5)
        for treatment, look in shown.items():
            own = table[table["treatment"] == treatment].sort_values("t_s")
            axes.plot(own["t_s"], own[name], color=look.color, marker=look.marker, ms=2.2, lw=1.0)
        _frame(axes, table[table["treatment"].isin(shown)][name], from_zero=name != "memory_mb")
    panels[-1].set_xlabel("seconds since the load began")
    figure.align_ylabels(panels)
    return finish(figure)


def _frame(axes: Axes, values: pd.Series[float], from_zero: bool) -> None:
    if from_zero:
        highest = float(values.max()) if np.isfinite(values).any() else 1.0
        axes.set_ylim(-0.04 * max(1.0, highest), 1.1 * max(1.0, highest))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    only_grid(axes, "y")


COUNTS_OVER_TIME = View("counts_over_time", TITLE, counts_table, draw_counts, suits=has_downloads)
