"""Capacity by search and by crash, for each version, with intervals, and whom each calls better."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.trials.summary import typical_values
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import trials_shown
from perflab.figures.intervals import ARROW, draw_interval, reach
from perflab.figures.nothing import empty_figure
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.points import draw_points
from perflab.figures.theme import FAINT, MUTED
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.recordings.responses import at_least_column
from perflab.systems.llm.capacity_methods import Method, agreement, methods, winners
from perflab.systems.llm.figures.versions import LOOKS, key, rungs_of

TITLE = "capacity by search and by failures"
TRIAL, AT_LEAST, TYPICAL, SAID = "trial", "at least", "typical value", "said"
COLUMNS = ["what", "method", "version", "state", "users", "low", "high", "n", "words"]
ROW_IN = 0.42
# An interval may reach so many times beyond the trials.
BEYOND = 1.5


def capacity_table(run: Run) -> pd.DataFrame:
    """Return capacities by method and version, trial by trial and as typical values.

    ``at least``: no number of users was too many, or the client was the limit. A typical value has
    its 95% interval over blocks where n allows one. ``said`` has in words whom each method calls
    the better version, and whether they agree.
    """
    trials = trials_shown(run)
    if trials.empty:
        return pd.DataFrame(columns=COLUMNS)
    own = trials.merge(rungs_of(run), on="treatment")
    told = [row for method in methods(run) for row in _of_method(method, own)]
    found = winners(run)
    said = [*(each.words for each in found), agreement(found)]
    told += [{"what": SAID, "words": words} for words in said]
    return pd.DataFrame(told, columns=COLUMNS)


def _of_method(method: Method, trials: pd.DataFrame) -> Iterator[dict[str, Any]]:
    column, bound = method.response, at_least_column(method.response)
    own = trials[trials["family"] == method.stem].reindex(
        columns=["version", "state", column, bound]
    )
    for row in own.to_dict("records"):
        known = pd.notna(row[column])
        users = row[column] if known else row[bound]
        what = TRIAL if known else AT_LEAST
        yield {"what": what, "method": method.words, "version": row["version"],
               "state": row["state"], "users": float(users)}  # fmt: skip
    for version, valid in own[own["state"] == "valid"].groupby("version"):
        found = typical_values(valid.astype({column: float, bound: float}), [column])
        yield {"what": TYPICAL, "method": method.words, "version": version, "users": found[column],
               "low": found[f"{column}_low"], "high": found[f"{column}_high"],
               "n": found[f"{column}_n"]}  # fmt: skip


def draw_capacity(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per method and version, its number at the right."""
    own = table[table["what"] != SAID]
    if not np.isfinite(own["users"].astype(float)).any():
        return empty_figure(page, TITLE, page.nothing)
    said = "".join(f" {w[:1].upper()}{w[1:]}." for w in table.loc[table["what"] == SAID, "words"])
    names = _names(own)
    typical = own[own["what"] == TYPICAL].to_dict("records")
    numbers = {_row(row): _number(row) for row in typical}
    labels = {name: ",\n".join(name) for name in names}
    own_rows = rows.Rows(page.sheet, labels, labels, ROW_IN, ROW_IN, numbers)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own_rows.height_in,
        subtitle="By search: the most users that hold the objectives. By failures: the users at"
        " which failures ended a ramp. Small points: trials (hollow: refused; a triangle: at least"
        f" so many); bars: typical values with 95% intervals over blocks. {ARROW}{said}",
        key=[*key(own), Line2D([], [], ls="", marker="^", ms=5, color=MUTED, mfc="white",
                               label=AT_LEAST)],
    )  # fmt: skip
    axes = figure.subplots()
    places = own_rows.frame(axes)
    axes.spines["left"].set_visible(own_rows.either(beside=True, above=False))
    _draw(axes, own.assign(y=[places[_row(row)] for row in own.to_dict("records")]))
    for row in typical:
        own_rows.say(axes, _row(row), 1.01, places[_row(row)], size=7,
                     transform=axes.get_yaxis_transform())  # fmt: skip
    axes.set_xlabel("users")
    only_grid(axes, "x")
    return finish(figure)


def _row(row: Mapping[Hashable, Any]) -> tuple[str, str]:
    return str(row["method"]), str(row["version"])


def _names(own: pd.DataFrame) -> list[tuple[str, str]]:
    """Return method and version of each row, in their order."""
    have = {_row(row) for row in own.to_dict("records")}
    names = [(method, version) for method in own["method"].unique() for version in LOOKS]
    return [name for name in names if name in have]


def _draw(axes: Axes, own: pd.DataFrame) -> None:
    trials = own[own["what"] == TRIAL]
    draw_points(axes, trials.assign(y=trials["y"] + 0.2), "users", "y", "version", LOOKS, s=10)
    for row in own[own["what"] == AT_LEAST].to_dict("records"):
        axes.plot([row["users"]], [row["y"] + 0.2], marker="^", ms=5, ls="", mfc="white",
                  mec=LOOKS[row["version"]].color)  # fmt: skip
    # How far intervals may reach: somewhat beyond the farthest trial of any row.
    within = reach(own["users"].astype(float), BEYOND)
    farthest = float(np.nanmax(own[["users", "high"]].astype(float)))
    axes.set_xlim(0, 1.05 * min(within[1], farthest))
    for row in own[own["what"] == TYPICAL].to_dict("records"):
        look, y = LOOKS[row["version"]], row["y"] - 0.12
        draw_interval(axes, (row["low"], row["high"]), y, within, color=look.color, lw=2.2)
        axes.plot([row["users"]], [y], marker=look.marker, ms=5.5, color=look.color)
        axes.axhline(row["y"] + 0.5, color=FAINT, lw=0.5, zorder=0)


def _number(row: Mapping[Hashable, Any]) -> str:
    n = f"n = {row['n']:.0f}"
    if np.isnan(row["users"]):
        return f"{AT_LEAST} {row['low']:,.0f}\n{n}" if row["low"] > 0 else f"none known\n{n}"
    between = "" if np.isnan(row["low"]) else f" [{row['low']:,.0f}, {row['high']:,.0f}]"
    return f"{row['users']:,.0f}{between}\n{n}"


def has_search(run: Run) -> bool:
    """Return whether a run has capacity by search."""
    return any(item.levels.get("rung", "").startswith("capacity_")
               for item in run.record.treatments)  # fmt: skip


CAPACITY_BY_METHOD = View(
    "capacity_by_method", TITLE, capacity_table, draw_capacity, suits=has_search
)
