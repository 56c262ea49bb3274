"""CPU that logins take while users join, over the cost of the password hash."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Plane, Planes, Rules
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.systems.chat.analysis.login_costs import COSTLY, costs_of_logins, login_line
from perflab.systems.chat.figures.login_bands import compares_logins

TITLE = "what logins cost, by the cost of their hash"
MEASURED, FITTED, PUBLISHED = "measured", "fitted", "published"
LOOKS = {MEASURED: Look(PALETTE[0], "o", MEASURED)}
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
    (published,) = table[table["what"] == PUBLISHED].to_dict("records")
    said = f" {published['words']}." if published["words"] else ""
    counts = table[table["what"] == MEASURED]
    named = [f"{n:g} at {at:g}" for n, at in zip(counts["n"], counts["rounds"], strict=True)]
    chart = Planes(
        TITLE,
        "CPU of the service while users join, above that with free logins of the same block; bars"
        f" are 95% intervals (an arrow: they go on). Blocks: {', '.join(named)} rounds.{said}",
        layers=(
            Intervals((MEASURED,), along="y", beyond=BEYOND,
                      among=(MEASURED,), by="what", looks=LOOKS, lw=1.8, size=5),
            Lines((FITTED,), color=PALETTE[1], label="a + b 2^rounds, fitted"),
            Rules((PUBLISHED,), f"published: {published['points']:g} points, with a hash that is"
                  " not named", along="y", ls=":"),
        ),
        planes=Plane(
            Axis("rounds of bcrypt: one more doubles the work", whole=True),
            Axis("CPU of logins, points of a core (log)", log=True),
        ),
        x="rounds",
        y="points",
    )  # fmt: skip
    return chart.draw(table, page)


def has_several_costs(run: Run) -> bool:
    """Return whether logins of several costs were compared with free ones."""
    rungs = [item.levels.get("rung", "") for item in run.record.treatments]
    return compares_logins(run) and sum(rung.startswith(COSTLY) for rung in rungs) > 1


def _one_cost(page: Page) -> str:  # noqa: ARG001
    return "Only one cost of a login was measured; login_rounds asks for more."


LOGIN_COST = View(
    "login_cost", TITLE, login_cost_table, draw_login_cost, suits=has_several_costs, empty=_one_cost
)
