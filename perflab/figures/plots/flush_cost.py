"""The cost of a disk flush over a run, and the commits of each trial."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Marks, Plane, Planes, Points
from perflab.figures.origin import Page
from perflab.figures.view import View
from perflab.recordings import Run

FLUSH_TITLE = "cost of a disk flush over the run, and the commits of the trials"
FLUSH, MIDDLE, COMMIT = "flush", "median flush", "median commit"
MOST_BLOCKS = 15
FLUSH_COLUMNS = ["what", "order", "block", "treatment", "state", "ms"]


def flush_cost_table(run: Run) -> pd.DataFrame:
    """Return the times of the flushes around each trial, and their median, in ms.

    The table also has the trial's median commit phase, with treatment and state. ``order`` numbers
    the trials in the order they ran.
    """
    trials = _trials_with_flushes(run)
    if not len(trials):
        return pd.DataFrame(columns=FLUSH_COLUMNS)
    flushes = trials[["order", "block", "flush_us"]].explode("flush_us", ignore_index=True)
    flushes = flushes.assign(what=FLUSH, ms=flushes["flush_us"].astype(float) / 1e3)
    middle = flushes.groupby(["order", "block"], as_index=False)["ms"].median().assign(what=MIDDLE)
    commits = trials.assign(what=COMMIT, ms=trials["trial_id"].map(_commit_medians(run)))
    commits = commits.astype({"ms": float})
    commits = commits[commits["ms"] > 0]
    table: pd.DataFrame = pd.concat([flushes, middle, commits], ignore_index=True)[FLUSH_COLUMNS]
    return table


def _trials_with_flushes(run: Run) -> pd.DataFrame:
    """Return the trials that hold a flush measurement, numbered in the order they ran."""
    trials = run.current_trials().sort_values("begin_ns", ignore_index=True)
    trials = trials.assign(order=np.arange(1, len(trials) + 1))
    # A trial that failed before its probe has no list.
    return trials[[np.size(values) > 0 and np.ndim(values) == 1 for values in trials["flush_us"]]]


def _commit_medians(run: Run) -> dict[str, float]:
    requests = run.requests(trial_ids=list(run.trials()["trial_id"]))
    if not len(requests) or "phase_commit_ms" not in requests:
        return {}
    good = requests[requests["error"] == ""]
    return dict(good.groupby("trial_id")["phase_commit_ms"].median())


def draw_flush_cost(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw every measured flush by trial in run order, and each trial's median commit phase."""
    hollow = bool(((table["what"] == COMMIT) & (table["state"] != "valid")).any())
    firsts = table.drop_duplicates("block")
    shown = firsts.iloc[:: -(-len(firsts) // MOST_BLOCKS)]
    x = Axis(
        "block, at its first trial (trials in the order they ran)",
        ticks=dict(zip(shown["order"], shown["block"].astype(str), strict=True)),
    )
    chart = Planes(
        FLUSH_TITLE,
        "Grey: single flushes on the database's file system, measured around each trial; bar: their"
        " median. Coloured: the trial's median commit phase as the service reports it"
        f"{', hollow where the trial does not count' * hollow}.",
        layers=(
            Marks((FLUSH,), "o", size=2.2),
            Marks((MIDDLE,), "_", "median disk flush", size=8.0),
            Points((COMMIT,), by="treatment", how={"s": 25, "linewidth": 0.5, "zorder": 4}),
        ),
        planes=Plane(x, Axis("time, ms (log)", log=True)),
        x="order",
        y="ms",
    )
    return chart.draw(table, page)


FLUSH_COST = View(
    "flush_cost", FLUSH_TITLE, flush_cost_table, draw_flush_cost,
    suits=lambda run: len(_trials_with_flushes(run)) > 0,
)  # fmt: skip
