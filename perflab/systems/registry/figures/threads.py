"""The registry's counts over a trial, and total duration over the threads of the executor."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes, Points
from perflab.figures.evidence import trials_shown
from perflab.figures.origin import Page
from perflab.figures.theme import PALETTE, Look
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.statistics.in_words import counted
from perflab.systems.registry.counts import TABLE
from perflab.systems.registry.figures.waterfall import first_trials, has_downloads
from perflab.systems.registry.rungs import LAST, RUNGS

COUNT_TITLE = "queue, threads, connections and memory over a trial"
PANELS = {
    "in_flight": "downloads\nin flight",
    "waiting_for_thread": "waiting for\na thread",
    "working_threads": "working\nthreads",
    "store_created": "store\nconnections,\nopened so far",
    "store_discarded": "of these\nthrown away",
    "memory_mb": "memory,\nMB (10^6)",
}
COUNT_COLUMNS = ["treatment", "t_s", "answered", *PANELS]
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
    measured = {name: look for name, look in page.looks.items() if name in set(table["treatment"])}
    shown = dict([*measured.items()][:MOST])
    rows = table[table["treatment"].isin(shown)]
    silent = [
        look.label
        for name, look in shown.items()
        if (rows.loc[rows["treatment"] == name, "answered"] != "yes").any()
    ]
    sentences = f" Did not answer for a while: {'; '.join(silent)}." if silent else ""
    if left_out := len(measured) - len(shown):
        sentences += f" Not drawn, but in the table: {counted(left_out, 'further treatment')}."
    chart = Planes(
        COUNT_TITLE,
        "Each treatment's first valid trial, asked five times a second. A line is broken where the"
        f" service did not answer.{sentences}",
        layers=(Lines(by="treatment", looks=shown, marked=True, how={"ms": 2.2, "lw": 1.0}),),
        planes=_planes,
        panel="count",
        across=1,
        height_in=1.35,
        further_in=0.95,
        share_x=True,
    )
    by_count = [rows.sort_values("t_s").assign(count=name, value=rows[name]) for name in PANELS]
    return chart.draw(pd.concat(by_count, ignore_index=True), page)


def _planes(_: pd.DataFrame, __: Page) -> dict[str, Plane]:
    x = Axis("seconds since the load began")
    return {
        name: Plane(x, Axis(words, below=None if name == "memory_mb" else 0.04, whole=True, few=3))
        for name, words in PANELS.items()
    }


COUNTS_OVER_TIME = View(
    "counts_over_time", COUNT_TITLE, counts_table, draw_counts, suits=has_downloads
)


CURVE_TITLE = "how many threads the downloads need"
TRIAL, AT_LEAST, BATCHES = "trial", "at least", "batches"
CURVE_COLUMNS = ["what", "threads", "state", "duration_s"]
LOOKS = {
    TRIAL: Look(PALETTE[0], "o", "trial: until the last download was there"),
    AT_LEAST: Look(PALETTE[1], "^", "trial with time-outs: at least that"),
}
# Levels of the rungs that differ from the last step only in their threads.
ALIKE = {name: str(RUNGS[LAST].settings[name]) for name in ("handler", "body", "pool_connections")}


def thread_table(run: Run) -> pd.DataFrame:
    """Return the total duration of every trial of the last step, by the threads of its executor.

    ``what`` is ``trial``, ``at least`` (downloads timed out) or ``batches``: downloads / threads,
    rounded up, times the seconds that the model takes over one connection of the link.
    """
    trials = trials_shown(run)
    levels = {**ALIKE, "clients": str(run.record.parameters["clients"])}
    rows = trials
    for factor, level in levels.items():
        rows = rows[rows[f"factor_{factor}"] == level]
    # Older recordings, without loads from inside, lack this factor.
    if "factor_load_from" in rows:
        rows = rows[rows["factor_load_from"] == "outside"]
    if rows.empty or rows["factor_executor_threads"].nunique() < 2:
        return pd.DataFrame(columns=CURVE_COLUMNS)
    at_least = rows.get("total_duration_s_at_least", pd.Series(np.nan, index=rows.index))
    duration_s = rows["total_duration_s"].astype(float)
    points = pd.DataFrame(
        {
            "what": np.where(duration_s.notna() | at_least.isna(), TRIAL, AT_LEAST),
            "threads": rows["factor_executor_threads"].astype(float),
            "state": rows["state"],
            "duration_s": duration_s.fillna(at_least.astype(float)),
        }
    )
    return pd.concat([points, _batches(run, points["threads"])], ignore_index=True)[CURVE_COLUMNS]


def _batches(run: Run, threads: pd.Series[float]) -> pd.DataFrame:
    parameters = run.record.parameters
    rate = parameters["bytes_per_s"]
    if rate == "unlimited":
        return pd.DataFrame(columns=CURVE_COLUMNS)
    batch_s = float(parameters["model_bytes"]) / float(rate)
    counts = np.arange(int(threads.min()), int(threads.max()) + 1)
    batches = [math.ceil(int(parameters["clients"]) / int(count)) for count in counts]
    return pd.DataFrame(
        {"what": BATCHES, "threads": counts, "duration_s": np.array(batches) * batch_s}
    )


CHART = Planes(
    CURVE_TITLE,
    "Every point is a trial (hollow: refused). Line: downloads / threads, rounded up, times the"
    " seconds that the model takes over one connection of the link; nothing is fitted.",
    layers=(
        Lines((BATCHES,), step=True, how={"lw": 1.2, "zorder": 1},
              label="batches over the link alone"),
        Points((*LOOKS,), looks=LOOKS, how={"s": 24}),
    ),
    planes=Plane(
        Axis("threads of the executor (log)", log=True), Axis("total duration, s (log)", log=True)
    ),
    x="threads",
    y="duration_s",
    height_in=3.2,
)  # fmt: skip


def has_threads(run: Run) -> bool:
    """Return whether a run compares sizes of the executor of the last step."""
    sizes = {
        treatment.levels.get("executor_threads")
        for treatment in run.record.treatments
        if all(treatment.levels.get(name) == level for name, level in ALIKE.items())
    }
    return "handler" in run.record.factors and len(sizes) > 1


THREAD_CURVE = View("thread_curve", CURVE_TITLE, thread_table, CHART.draw, suits=has_threads)
