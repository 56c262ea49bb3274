"""Capacity by search and by crash, for each version, with intervals, and whom each calls better."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.trials.summary import typical_values
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, Points, RowChart
from perflab.figures.evidence import trials_shown
from perflab.figures.intervals import ARROW
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.recordings.responses import at_least_column
from perflab.systems.llm.capacity_methods import Method, agreement, methods
from perflab.systems.llm.figures.versions import LOOKS, rungs_of

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
    found = methods(run)
    told = [row for method in found for row in _of_method(method, own)]
    said = [*(each.said for each in found), agreement(found)]
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
    said = "".join(f" {w[:1].upper()}{w[1:]}." for w in table.loc[table["what"] == SAID, "words"])
    own = table[table["what"] != SAID]
    how: dict[str, Any] = {"by": "version", "looks": LOOKS}
    chart = RowChart(
        TITLE,
        "By search: the most users that hold the objectives. By failures: the users at which"
        " failures ended a ramp. Small points: trials (hollow: refused; a triangle: at least so"
        f" many); bars: typical values with 95% intervals over blocks. {ARROW}{said}",
        layers=(
            Points((TRIAL,), at=0.2, how={"s": 10}, keyed=False, **how),
            Marks((AT_LEAST,), "^", AT_LEAST, hollow=True, at=0.2, **how),
            Intervals((TYPICAL,), at=-0.12, beyond=BEYOND, lw=2.2, size=5.5, **how),
        ),
        panels={"": Axis("users", below=0.0)},
        row="row",
        value="users",
        labels=_labels,
        row_in=ROW_IN,
        said=_numbers,
    )
    return chart.draw(own.assign(row=own["method"] + ",\n" + own["version"]), page)


def _labels(own: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    """Return a label for method and version of each row, in their order."""
    names = [f"{method},\n{version}" for method in own["method"].unique() for version in LOOKS]
    return {name: name.replace("\n", " ") for name in names if name in set(own["row"])}


def _numbers(own: pd.DataFrame) -> dict[Hashable, str]:
    typical = own[own["what"] == TYPICAL].to_dict("records")
    return {row["row"]: _number(row) for row in typical}


def _number(row: Mapping[Hashable, Any]) -> str:
    n = f"n = {row['n']:.0f}"
    if np.isnan(row["users"]):
        return f"{AT_LEAST} {row['low']:,.0f}\n{n}" if row["low"] > 0 else f"none known\n{n}"
    between = "" if np.isnan(row["low"]) else f" [{row['low']:,.0f}, {row['high']:,.0f}]"
    return f"{row['users']:,.0f}{between}\n{n}"


def has_search(run: Run) -> bool:
    """Return whether a run has capacity by search."""
    rungs = [item.levels.get("rung", "") for item in run.record.treatments]
    return any(rung.startswith("capacity_") for rung in rungs)


CAPACITY_BY_METHOD = View(
    "capacity_by_method", TITLE, capacity_table, draw_capacity, suits=has_search
)
