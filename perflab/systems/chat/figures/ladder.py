"""The ladder: percentiles of every rung beside the study's targets, of deliveries and of pings.

Published percentiles are of pings: they stand beside pings alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import TYPICAL, trials_shown, typical_rows
from perflab.figures.intervals import draw_interval, reach
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.plots.published_marks import (
    OTHER_LOAD,
    SAME_LOAD,
    draw_published,
    published_key,
)
from perflab.figures.points import draw_points
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.held import targets_ms
from perflab.systems.chat.analysis.study_table import published_of

DELIVERIES, PINGS = "delivery", "all_ping"
TITLES = {
    DELIVERIES: "delivery latency, rung by rung",
    PINGS: "pings, rung by rung, measured and published",
}
OF = {
    DELIVERIES: "All deliveries of a trial; no size was published of them.",
    PINGS: "All pings of a trial, one a second, silent times included. Published are pings of one"
    " run each, from another machine.",
}
BEYOND = 3.0
SHARES = ("p90", "p95", "p99")
TRIAL, TARGET, PUBLISHED = "trial", "target", "published"
COLUMNS = ["percentile", "what", "treatment", "state", "ms", "low", "high"]
LOOKS = {TRIAL: Look(PALETTE[0], "o", TRIAL)}


def ladder_table(run: Run, kind: str = DELIVERIES) -> pd.DataFrame:
    """Return three percentiles of the deliveries (or pings) of each rung, and the study's targets.

    ``what`` is a trial that did not fail (with its state), the typical value over valid trials
    (which statistic; with its 95% interval), what was published of pings (``state``: whether the
    rung has the published load), or the target.
    """
    trials = trials_shown(run)
    columns = [f"{kind}_{share}_ms" for share in SHARES]
    if not np.isfinite(trials.reindex(columns=columns).astype(float)).any(axis=None):
        return pd.DataFrame(columns=COLUMNS)
    parts = [part for share in SHARES for part in _of_share(run, trials, kind, share)]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def pings_table(run: Run) -> pd.DataFrame:
    """Return :func:`ladder_table` of pings."""
    return ladder_table(run, PINGS)


def _of_share(run: Run, trials: pd.DataFrame, kind: str, share: str) -> list[pd.DataFrame]:
    column = f"{kind}_{share}_ms"
    typical = typical_rows(run, column).rename(columns={"value": "ms"})
    limit_ms = targets_ms()[f"{DELIVERIES}_{share}_ms"]
    found = [
        trials.assign(what=TRIAL, ms=trials[column].astype(float)),
        typical[typical["n"] > 1],
        _published(run, share) if kind == PINGS else pd.DataFrame(),
        pd.DataFrame([{"what": TARGET, "ms": limit_ms}]),
    ]
    return [part.assign(percentile=share).reindex(columns=COLUMNS) for part in found if len(part)]


def _published(run: Run, share: str) -> pd.DataFrame:
    """Return the published percentile of the rungs that stand for a row of the study's table."""
    rows = []
    for item in run.record.treatments:
        known = published_of(item.levels)
        if share in known.ms:
            state = SAME_LOAD if known.same_load else OTHER_LOAD
            rows.append((PUBLISHED, item.name, state, known.ms[share]))
    return pd.DataFrame(rows, columns=["what", "treatment", "state", "ms"])


def has_rungs(run: Run) -> bool:
    """Return whether a run is of a ladder."""
    return "rung" in run.record.factors


def has_pings(run: Run) -> bool:
    """Return whether a run of a ladder has trials with enough pings for a p90."""
    column = f"{PINGS}_p90_ms"
    return has_rungs(run) and bool(run.trials().reindex(columns=[column])[column].notna().any())


def draw_ladder(table: pd.DataFrame, page: Page, kind: str = DELIVERIES) -> LabFigure:
    """Draw three percentiles per rung."""
    published = table[table["what"] == PUBLISHED]
    own_rows = rows.of_looks(page.looks, page.sheet, 0.34)
    figure = page_canvas(
        page,
        TITLES[kind],
        plot_height_in=0.6 + own_rows.height_in,
        subtitle="Points: trials (hollow: refused). Bar: typical value over valid trials, with its"
        " 95% interval where n allows one (an arrow: it goes on); none of a single trial. Dashed:"
        f" the study's targets. {OF[kind]}",
        key=[*_key(), *published_key(published)],
    )
    panels = figure.subplots(1, len(SHARES), sharey=True)
    for axes, (share, own) in zip(panels, table.groupby("percentile"), strict=True):
        places = own_rows.frame(axes)
        _draw(axes, own.assign(y=own["treatment"].map(places)))
        lower = {name: place - 0.15 for name, place in places.items()}
        draw_published(axes, own[own["what"] == PUBLISHED], "ms", lower)
        own_rows.rules(axes)
        axes.set_xlabel(f"{share}, ms (log)")
        only_grid(axes, "x")
    return finish(figure)


def draw_pings(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw three percentiles of pings per rung, beside the published ones."""
    return draw_ladder(table, page, PINGS)


def _draw(axes: Axes, own: pd.DataFrame) -> None:
    trials, targets = own[own["what"] == TRIAL], own[own["what"] == TARGET]
    draw_points(axes, trials.assign(y=trials["y"] + 0.14), "ms", "y", "what", LOOKS, s=13)
    for each in own[own["what"].isin(TYPICAL)].to_dict("records"):
        _draw_typical(axes, each, each["y"] - 0.15, reach(trials["ms"], BEYOND))
    for target in targets["ms"]:
        axes.axvline(target, color=MUTED, lw=1.0, ls=(0, (4, 2)), zorder=1)
    if np.isfinite(trials["ms"]).any():
        log_axis(axes, "x")
        # Three panels share the width: numbers at the tens, and at the threes where few are seen.
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high < 40 * low else (1.0,)))


def _draw_typical(
    axes: Axes, typical: Mapping[Hashable, Any], y: float, within: tuple[float, float]
) -> None:
    axes.plot([typical["ms"]] * 2, [y - 0.17, y + 0.17], color=INK, lw=2)
    interval = float(typical["low"]), float(typical["high"])
    draw_interval(axes, interval, y, within, color=INK, lw=1.1)


def _key() -> list[Line2D]:
    return [
        Line2D([], [], ls="", marker="o", ms=4, color=PALETTE[0], label=TRIAL),
        Line2D([], [], color=INK, lw=2, label="typical value"),
        Line2D([], [], color=MUTED, lw=1.0, ls=(0, (4, 2)), label=TARGET),
    ]


LADDER = View("ladder", TITLES[DELIVERIES], ladder_table, draw_ladder, suits=has_rungs)
PINGED = View("pings", TITLES[PINGS], pings_table, draw_pings, suits=has_pings)
