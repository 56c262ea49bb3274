"""The ladder: measured and published percentiles of every rung, beside the study's targets."""

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
from perflab.figures.points import draw_points
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run, published
from perflab.systems.chat.analysis.held import targets_ms

TITLE = "delivery latency, rung by rung"
BEYOND = 3.0
SHARES = ("p90", "p95", "p99")
TRIAL, TARGET, PUBLISHED = "trial", "target", "published"
COLUMNS = ["percentile", "what", "treatment", "state", "ms", "low", "high"]
LOOKS = {TRIAL: Look(PALETTE[0], "o", TRIAL), PUBLISHED: Look(PALETTE[1], "D", PUBLISHED)}


def ladder_table(run: Run) -> pd.DataFrame:
    """Return three percentiles of the deliveries of each rung, and the study's targets.

    ``what`` is a trial that did not fail (with its state), the typical value over valid trials
    (which statistic; with its 95% interval), what was published, or the target.
    """
    trials = trials_shown(run)
    if not np.isfinite(trials.reindex(columns=[*targets_ms()]).astype(float)).any(axis=None):
        return pd.DataFrame(columns=COLUMNS)
    parts = [part for share in SHARES for part in _of_share(run, trials, share)]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def _of_share(run: Run, trials: pd.DataFrame, share: str) -> list[pd.DataFrame]:
    column = f"delivery_{share}_ms"
    typical = typical_rows(run, column).rename(columns={"value": "ms"})
    found = [
        trials.assign(what=TRIAL, ms=trials[column].astype(float)),
        typical[typical["n"] > 1],
        pd.DataFrame(_published(run, share), columns=["what", "treatment", "ms"]),
        pd.DataFrame([{"what": TARGET, "ms": targets_ms()[column]}]),
    ]
    return [part.assign(percentile=share).reindex(columns=COLUMNS) for part in found]


def _published(run: Run, share: str) -> list[tuple[str, str, float]]:
    """Return the published percentile of the treatments that are a row of the study's table."""
    known = published("chat")
    own = known[known["measure"] == f"{share}_latency"]
    values = dict(zip(own["scenario"], own["value"].astype(float), strict=True))
    return [
        (PUBLISHED, item.name, values[item.levels["scenario"]])
        for item in run.record.treatments
        if item.levels.get("scenario") in values
    ]


def has_rungs(run: Run) -> bool:
    """Return whether a run is of a ladder."""
    return "rung" in run.record.factors


def draw_ladder(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw three percentiles per rung."""
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + len(page.looks) * rows.height_in(page.looks, 0.34),
        subtitle="Points: trials (hollow: refused). Bar: typical value over valid trials, with its"
        " 95% interval where n allows one (an arrow: it goes on); none of a single trial. Dashed:"
        " the study's targets. All deliveries of a trial.",
        key=_key(has_published=PUBLISHED in set(table["what"])),
    )
    panels = figure.subplots(1, len(SHARES), sharey=True)
    for axes, (share, own) in zip(panels, table.groupby("percentile"), strict=True):
        places = rows.frame(axes, page.looks)
        _draw(axes, own.assign(y=own["treatment"].map(places)))
        for row in [*places.values()][:-1]:
            axes.axhline(row + 0.5, color=FAINT, lw=0.6, zorder=0)
        axes.set_xlabel(f"{share}, ms (log)")
        only_grid(axes, "x")
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame) -> None:
    trials, targets = own[own["what"] == TRIAL], own[own["what"] == TARGET]
    draw_points(axes, trials.assign(y=trials["y"] + 0.14), "ms", "y", "what", LOOKS, s=13)
    for each in own[own["what"].isin(TYPICAL)].to_dict("records"):
        _draw_typical(axes, each, each["y"] - 0.15, reach(trials["ms"], BEYOND))
    claimed = own[own["what"] == PUBLISHED]
    axes.scatter(claimed["ms"], claimed["y"] - 0.15, marker="D", s=16, c="white",
                 edgecolors=PALETTE[1], linewidths=1.1, zorder=4)  # fmt: skip
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


def _key(has_published: bool) -> list[Line2D]:
    handles = [
        Line2D([], [], ls="", marker="o", ms=4, color=PALETTE[0], label=TRIAL),
        Line2D([], [], color=INK, lw=2, label="typical value"),
        Line2D([], [], color=MUTED, lw=1.0, ls=(0, (4, 2)), label=TARGET),
    ]
    if has_published:
        handles.append(Line2D([], [], ls="", marker="D", ms=4.5, mfc="white", mec=PALETTE[1],
                              label=PUBLISHED))  # fmt: skip
    return handles


LADDER = View("ladder", TITLE, ladder_table, draw_ladder, suits=has_rungs)
