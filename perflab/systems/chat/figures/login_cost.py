"""CPU that logins take while users join, over the cost of the password hash."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.intervals import draw_interval, reach
from perflab.figures.looks import PALETTE
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.theme import MUTED
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.systems.chat.analysis.login_costs import COSTLY, costs_of_logins, login_line
from perflab.systems.chat.figures.login_bands import compares_logins

TITLE = "what logins cost, by the cost of their hash"
MEASURED, FITTED, PUBLISHED = "measured", "fitted", "published"
COLUMNS = ["what", "rounds", "points", "low", "high", "n", "words"]
STEPS = 40
BEYOND = 2.0


def login_cost_table(run: Run) -> pd.DataFrame:
    """Return the measured costs, the line through them, and the published points.

    ``words`` say, with the published points, at which cost they would appear here.
    """
    costs = costs_of_logins(run)
    if len(costs) < 2:
        return pd.DataFrame(columns=COLUMNS)
    wanted = published_value("chat", "claims", "claim 6", "cpu_difference")
    line = login_line(costs)
    where = math.nan if line is None else line.rounds_of(wanted)
    words = "" if math.isnan(where) else f"{wanted:g} points would be {where:.1f} rounds here"
    parts = [costs.assign(what=MEASURED)]
    if line is not None:
        last = max(costs["rounds"].max(), 0 if math.isnan(where) else where)
        rounds = np.linspace(costs["rounds"].min(), last, STEPS)
        fitted = pd.DataFrame({"rounds": rounds, "points": line.points(rounds)})
        parts.append(fitted.assign(what=FITTED))
    parts.append(pd.DataFrame([{"what": PUBLISHED, "points": wanted, "words": words}]))
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def draw_login_cost(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw points of CPU over rounds, on a logarithmic axis: each round doubles the work."""
    measured, fitted = (table[table["what"] == name] for name in (MEASURED, FITTED))
    (published,) = table[table["what"] == PUBLISHED].to_dict("records")
    said = f" {published['words']}." if published["words"] else ""
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.2),
        subtitle="CPU of the service while users join, above that with free logins of the same"
        f" block; bars are 95% intervals (an arrow: they go on).{said}",
        key=_key(table),
    )
    axes = figure.subplots()
    within = reach(measured["points"], BEYOND)
    for each in measured.to_dict("records"):
        draw_interval(axes, (each["low"], each["high"]), each["rounds"], within, along="y",
                      color=PALETTE[0], lw=1.8)  # fmt: skip
        _name(axes, each["rounds"], each["points"], int(each["n"]))
    axes.plot(measured["rounds"], measured["points"], ls="", marker="o", ms=5, color=PALETTE[0])
    axes.plot(fitted["rounds"], fitted["points"], color=PALETTE[1], lw=1.3)
    axes.axhline(published["points"], color=MUTED, lw=1.1, ls=":")
    log_axis(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("rounds of bcrypt: one more doubles the work")
    axes.set_ylabel("CPU of logins, points of a core (log)")
    only_grid(axes, "y")
    return finish(figure)


def _name(axes: Axes, rounds: float, points: float, n: int) -> None:
    axes.annotate(f"n = {n}", (rounds, points), (6, -3), textcoords="offset points",
                  fontsize=7.5, color=MUTED, va="top")  # fmt: skip


def _key(table: pd.DataFrame) -> list[Line2D]:
    handles = [Line2D([], [], color=PALETTE[0], marker="o", ms=5, lw=1.8, label=MEASURED)]
    if (table["what"] == FITTED).any():
        label = "a + b 2^rounds, fitted"
        handles.append(Line2D([], [], color=PALETTE[1], lw=1.3, label=label))
    points = table.loc[table["what"] == PUBLISHED, "points"].iloc[0]
    label = f"published: {points:g} points, with a hash that is not named"
    return [*handles, Line2D([], [], color=MUTED, lw=1.1, ls=":", label=label)]


def has_several_costs(run: Run) -> bool:
    """Return whether logins of several costs were compared with free ones."""
    rungs = [item.levels.get("rung", "") for item in run.record.treatments]
    return compares_logins(run) and sum(rung.startswith(COSTLY) for rung in rungs) > 1


def _one_cost(page: Page) -> str:  # noqa: ARG001
    return "Only one cost of a login was measured; login_rounds asks for more."


LOGIN_COST = View(
    "login_cost", TITLE, login_cost_table, draw_login_cost, suits=has_several_costs, empty=_one_cost
)
