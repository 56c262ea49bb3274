"""Queue, threads, connections and memory over a trial."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes
from perflab.figures.origin import Page
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.statistics.in_words import counted
from perflab.systems.registry.counts import TABLE
from perflab.systems.registry.waterfall import first_trials, has_downloads

COUNT_TITLE = "queue, threads, connections and memory over a trial"
COUNT_PANELS = {
    "in_flight": "downloads\nin flight",
    "waiting_for_thread": "waiting for\na thread",
    "working_threads": "working\nthreads",
    "store_created": "store\nconnections,\nopened so far",
    "store_discarded": "of these\nthrown away",
    "memory_mb": "memory,\nMB (10^6)",
}
COUNT_COLUMNS = ["treatment", "t_s", "answered", *COUNT_PANELS]
MB = 1e6
# There are no more distinguishable colours.
MOST = 8


def counts_table(run: Run) -> pd.DataFrame:
    """Return the counts of each treatment's first valid trial, in seconds since its load began.

    If the service did not answer (``answered`` is ``no``) its numbers are NaN.
    """
    trials = first_trials(run)["trial_id"].tolist()
    if not trials:
        return pd.DataFrame(columns=COUNT_COLUMNS)
    counts = run.table(TABLE, trials)
    begins = run.requests(trial_ids=trials).groupby("trial_id")["planned_ns"].min()
    since_ns = counts["t_ns"] - counts["trial_id"].map(begins)
    took_ns = (counts["answered_ns"] - counts["t_ns"]).where(counts["answered_ns"] > 0)
    with_times = counts.assign(
        # The counts are those at the instant of the answer, not of the question.
        t_s=(since_ns + took_ns.fillna(0)) / 1e9,
        answered=np.where(took_ns.notna(), "yes", "no"),
        memory_mb=counts["rss_bytes"] / MB,
    )
    return with_times[COUNT_COLUMNS].reset_index(drop=True)


def draw_counts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel per count, a line per treatment; a line has gaps without answers."""
    measured = {
        name: style for name, style in page.styles.items() if name in set(table["treatment"])
    }
    shown = dict([*measured.items()][:MOST])
    rows = table[table["treatment"].isin(shown)]
    silent = [
        style.label
        for name, style in shown.items()
        if (rows.loc[rows["treatment"] == name, "answered"] != "yes").any()
    ]
    sentences = f" Did not answer for a while: {'; '.join(silent)}." if silent else ""
    if left_out := len(measured) - len(shown):
        sentences += f" Not drawn, but in the table: {counted(left_out, 'further treatment')}."
    x = Axis("seconds since the load began")
    planes = {
        name: Plane(x, Axis(words, below=None if name == "memory_mb" else 0.04, whole=True, few=3))
        for name, words in COUNT_PANELS.items()
    }
    chart = Planes(
        COUNT_TITLE,
        "Each treatment's first valid trial, asked five times a second. A line is broken where the"
        f" service did not answer.{sentences}",
        layers=(Lines(by="treatment", styles=shown, marked=True, how={"ms": 2.2, "lw": 1.0}),),
        planes=planes,
        panel="count",
        across=1,
        height_in=1.35,
        further_in=0.95,
        share_x=True,
    )
    by_count = [
        rows.sort_values("t_s").assign(count=name, value=rows[name]) for name in COUNT_PANELS
    ]
    return chart.draw(pd.concat(by_count, ignore_index=True), page)


COUNTS_OVER_TIME = View(
    "counts_over_time", COUNT_TITLE, counts_table, draw_counts, suits=has_downloads
)
