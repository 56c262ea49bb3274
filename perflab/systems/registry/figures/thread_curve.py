"""Total duration over the threads of the executor, with what batches over the link would take."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from perflab.figures.charts import Axis, Lines, Plane, Planes, Points
from perflab.figures.evidence import trials_shown
from perflab.figures.looks import PALETTE, Look
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.registry.rungs import LAST, RUNGS

TITLE = "how many threads the downloads need"
TRIAL, AT_LEAST, BATCHES = "trial", "at least", "batches"
COLUMNS = ["what", "threads", "state", "duration_s"]
LOOKS = {
    TRIAL: Look(PALETTE[0], "o", "trial: until the last download was there"),
    AT_LEAST: Look(PALETTE[1], "^", "trial with time-outs: at least that"),
}
# Rungs that differ from the last step in their threads alone.
ALIKE = {name: str(RUNGS[LAST].settings[name]) for name in ("handler", "body", "pool_connections")}


def thread_table(run: Run) -> pd.DataFrame:
    """Return the total duration of every trial of the last step, by the threads of its executor.

    ``what`` is ``trial``, ``at least`` (downloads timed out) or ``batches``: the curve of downloads
    / threads, rounded up, times what the model takes over one connection of the link.
    """
    trials = trials_shown(run)
    wanted = {**ALIKE, "clients": str(run.record.parameters["clients"])}
    own = trials
    for factor, level in wanted.items():
        own = own[own[f"factor_{factor}"] == level]
    # Runs from before there was a load from inside do not say where theirs came from.
    if "factor_load_from" in own:
        own = own[own["factor_load_from"] == "outside"]
    if own.empty or own["factor_executor_threads"].nunique() < 2:
        return pd.DataFrame(columns=COLUMNS)
    at_least = own.get("total_duration_s_at_least", pd.Series(np.nan, index=own.index))
    known = own["total_duration_s"].astype(float)
    points = pd.DataFrame(
        {
            "what": np.where(known.notna() | at_least.isna(), TRIAL, AT_LEAST),
            "threads": own["factor_executor_threads"].astype(float),
            "state": own["state"],
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


CHART = Planes(
    TITLE,
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
        item.levels.get("executor_threads")
        for item in run.record.treatments
        if all(item.levels.get(name) == level for name, level in ALIKE.items())
    }
    return "handler" in run.record.factors and len(sizes) > 1


THREAD_CURVE = View("thread_curve", TITLE, thread_table, CHART.draw, suits=has_threads)
