"""Database figures: where commits wait, and the cost of a disk flush over the run."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd

from perflab.analysis.users_elsewhere import NO_WAIT, has_waits, wait_shares
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Bars, Marks, Plane, Planes, Points, RowChart
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, PALETTE, in_order, looks_of
from perflab.figures.view import View
from perflab.recordings import Run

WAITS_TITLE = "where commits wait, in the database"
# Bars of more events would be too thin to see.
SHOWN = 5
TICKS = {0.25 * n: f"{25 * n}%" for n in range(5)}


def draw_database_waits(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw, per treatment, a bar for each of the events with the largest shares."""
    events = _events(table)
    colors = {name: FAINT if name == NO_WAIT else PALETTE[n] for n, name in enumerate(events)}
    chart = RowChart(
        WAITS_TITLE,
        "Share of the samples of active backends, by wait event, mean over valid trials with its"
        " 95% t interval. The look is a backend too: on a core that they share, no other can be"
        " seen running while it looks. Without a wait event is also who makes the pause of"
        " commit_delay.",
        layers=(Bars(colors, "{:.0%}".format, by="event", missing="never seen"),),
        panels={"": Axis("share of active backends", ends=(0, 1.3), ticks=TICKS)},
        value="share",
        row_in=max(0.5, 0.19 * len(events) + 0.14),
        said=_words_beside,
        nothing="no active backend",
    )
    return chart.draw(table, page)


def _events(table: pd.DataFrame) -> list[str]:
    """Return the events with the largest shares in any treatment; ``NO_WAIT`` is last."""
    most = table.groupby("event")["share"].max().sort_values(ascending=False)
    waits = [str(name) for name in most.index if name != NO_WAIT][:SHOWN]
    return [*waits, *([NO_WAIT] if NO_WAIT in most.index else [])]


def _words_beside(table: pd.DataFrame) -> dict[Hashable, str]:
    firsts = table.drop_duplicates("treatment").to_dict("records")
    return {
        row["treatment"]: f"n = {row['trials']:g} trials\n{row['samples']:,.0f} samples\n"
        f"{row['backends']:.2f} at a time"
        for row in firsts
    }


DATABASE_WAITS = View(
    "database_waits", WAITS_TITLE, lambda run: in_order(wait_shares(run), looks_of(run.record)),
    draw_database_waits, suits=has_waits,
)  # fmt: skip


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
