"""What the service counts over a trial: who waits, who works, connections, memory."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.numerals import counted
from perflab.recordings import Run
from perflab.systems.registry.figures.waterfall import first_trials, has_downloads
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
# More lines than colours could not be told apart.
MOST = 8


def counts_table(run: Run) -> pd.DataFrame:
    """Return the counts of each treatment's first valid trial, in seconds since its load began.

    Where the service did not answer a question (``answered`` is ``no``) its numbers are NaN.
    """
    trials = first_trials(run)["trial_id"].tolist()
    if not trials:
        return pd.DataFrame(columns=COLUMNS)
    counts = run.table(TABLE, trials)
    begins = run.requests(trial_ids=trials).groupby("trial_id")["planned_ns"].min()
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
    own = table[table["treatment"].isin(shown)]
    silent = [
        look.label
        for name, look in shown.items()
        if (own.loc[own["treatment"] == name, "answered"] != "yes").any()
    ]
    said = f" Did not answer for a while: {'; '.join(silent)}." if silent else ""
    if left_out := len(measured) - len(shown):
        said += f" Not drawn, but in the table: {counted(left_out, 'further treatment')}."
    chart = Planes(
        TITLE,
        "Each treatment's first valid trial, asked five times a second. A line is broken where the"
        f" service did not answer.{said}",
        layers=(Lines(by="treatment", looks=shown, marked=True, how={"ms": 2.2, "lw": 1.0}),),
        planes=_planes,
        panel="count",
        across=1,
        height_in=1.35,
        further_in=0.95,
        share_x=True,
    )
    by_count = [own.sort_values("t_s").assign(count=name, value=own[name]) for name in PANELS]
    return chart.draw(pd.concat(by_count, ignore_index=True), page)


def _planes(_: pd.DataFrame, __: Page) -> dict[str, Plane]:
    x = Axis("seconds since the load began")
    return {
        name: Plane(x, Axis(words, below=None if name == "memory_mb" else 0.04, whole=True, few=3))
        for name, words in PANELS.items()
    }


COUNTS_OVER_TIME = View("counts_over_time", TITLE, counts_table, draw_counts, suits=has_downloads)
