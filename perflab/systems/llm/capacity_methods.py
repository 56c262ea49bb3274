"""Capacity by search beside capacity by failures: which version each method calls better.

Capacity by search is the most users that hold the objectives; by the published method it is the
users at which a number of failures ended a ramp. They are two estimands, so their numbers are not
compared, only the versions that they call better.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.evaluation import evaluate
from perflab.analysis.validity import typical_values
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, Points, RowChart
from perflab.figures.origin import Page, trials_shown
from perflab.figures.view import ARROW, View
from perflab.recordings import Run
from perflab.recordings.responses import at_least_column
from perflab.statistics.comparison import SMALLEST_N, Effect
from perflab.statistics.in_words import number
from perflab.systems.llm.rungs import CAPACITY, FEW_FILES, HELD, USERS
from perflab.systems.llm.users_at_failure import VERSION_LOOKS, rungs_of

NOBODY, UNKNOWN = "not shown", "not known"


@dataclass(frozen=True)
class Method:
    """A method of capacity: its words, the stem of its rungs' names, and its response.

    ``effect`` is the ratio of new over old by this method; None if no block has both versions.
    """

    words: str
    stem: str
    response: str
    effect: Effect | None

    @property
    def winner(self) -> str:
        """Return ``new``, ``old``, "not shown" (the interval includes 1), or "not known"."""
        effect = self.effect
        if effect is None or effect.n < SMALLEST_N or np.isnan([effect.low, effect.high]).all():
            return UNKNOWN
        if effect.low > 1:
            return "new"
        return "old" if effect.high < 1 else NOBODY

    @property
    def sentence(self) -> str:
        """Return the ratio with its interval and the winner."""
        if self.effect is None:
            return f"{self.words}: no block has both versions"
        ratio = f"new over old {number(self.effect.estimate)}"
        if math.isnan(self.effect.estimate):
            ratio = f"new over old {self.effect.bound} {number(self.effect.limit)}"
        between = f"[{number(self.effect.low)}, {number(self.effect.high)}]"
        interval = "no interval" if math.isnan(self.effect.low) else between
        return f"{self.words}: {ratio} {interval}, n = {self.effect.n}, winner {self.winner}"


def methods(run: Run) -> list[Method]:
    """Return the methods that a run has, search first, then stops by number of descriptors."""
    families = set(rungs_of(run)["family"])
    limits = sorted(int(name.split("_")[1]) for name in families if name.startswith(FEW_FILES))
    offered = [(CAPACITY, "by search", HELD)] if CAPACITY in families else []
    offered += [
        (f"{FEW_FILES}_{limit}", f"by failures, {limit} descriptors", USERS) for limit in limits
    ]
    effects = {
        (finding.contrast.numerator.get("rung"), finding.contrast.response): finding.effect
        for finding in evaluate(run)
        if finding.contrast.denominator.get("rung", "").endswith("_old")
    }
    return [
        Method(words, stem, response, effects.get((f"{stem}_new", response)))
        for stem, words, response in offered
    ]


def agreement(compared: list[Method]) -> str:
    """Say whether search and every stop by failures name the same winner.

    Methods that show no winner do not agree: the difference may be too small for them.
    """
    if len({method.stem == CAPACITY for method in compared}) < 2:
        return "only one method was measured (sets=capacity,limits has both)"
    winners = {method.winner for method in compared}
    if UNKNOWN in winners:
        return "whether they name the same winner is not known"
    shown = winners - {NOBODY}
    if not shown:
        return "no method shows a winner"
    if len(shown) > 1:
        return "the methods name different winners"
    if NOBODY not in winners:
        return f"both methods name the same winner: {compared[0].winner}"
    showing = " and ".join(method.words for method in compared if method.winner != NOBODY)
    not_showing = " or ".join(method.words for method in compared if method.winner == NOBODY)
    return f"{shown.pop()} is the winner {showing}; no winner is shown {not_showing}"


TITLE = "capacity by search and by failures"
TRIAL, AT_LEAST, TYPICAL, SAID = "trial", "at least", "typical value", "said"
COLUMNS = ["what", "method", "version", "state", "users", "low", "high", "n", "words"]
# An interval may reach this many times beyond the trials.
BEYOND = 1.5


def capacity_table(run: Run) -> pd.DataFrame:
    """Return capacities by method and version, of each trial and as typical values.

    ``at least``: no number of users was too many, or the client was the limit. A typical value has
    its 95% interval over blocks if n allows one. ``said`` has, in ``words``, which version each
    method calls better, and whether they agree.
    """
    trials = trials_shown(run)
    if trials.empty:
        return pd.DataFrame(columns=COLUMNS)
    with_rungs = trials.merge(rungs_of(run), on="treatment")
    of_run = methods(run)
    rows = [row for method in of_run for row in _of_method(method, with_rungs)]
    sentences = [*(method.sentence for method in of_run), agreement(of_run)]
    rows += [{"what": SAID, "words": words} for words in sentences]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_method(method: Method, trials: pd.DataFrame) -> Iterator[dict[str, Any]]:
    column, bound = method.response, at_least_column(method.response)
    of_method = trials[trials["family"] == method.stem].reindex(
        columns=["version", "state", column, bound]
    )
    for row in of_method.to_dict("records"):
        is_known = pd.notna(row[column])
        yield {"what": TRIAL if is_known else AT_LEAST, "method": method.words,
               "version": row["version"], "state": row["state"],
               "users": float(row[column] if is_known else row[bound])}  # fmt: skip
    for version, valid in of_method[of_method["state"] == "valid"].groupby("version"):
        typical = typical_values(valid.astype({column: float, bound: float}), [column])
        yield {"what": TYPICAL, "method": method.words, "version": version,
               "users": typical[column], "low": typical[f"{column}_low"],
               "high": typical[f"{column}_high"], "n": typical[f"{column}_n"]}  # fmt: skip


def draw_capacity(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per method and version, its number at the right."""
    sentences = "".join(
        f" {text[:1].upper()}{text[1:]}." for text in table.loc[table["what"] == SAID, "words"]
    )
    rows = table[table["what"] != SAID]
    style: dict[str, Any] = {"by": "version", "looks": VERSION_LOOKS}
    chart = RowChart(
        TITLE,
        "By search: the most users that hold the objectives. By failures: the users at which"
        " failures ended a ramp. Small points: trials (hollow: refused; a triangle: at least so"
        f" many); bars: typical values with 95% intervals over blocks. {ARROW}{sentences}",
        layers=(
            Points((TRIAL,), at=0.2, how={"s": 10}, keyed=False, **style),
            Marks((AT_LEAST,), "^", AT_LEAST, hollow=True, at=0.2, **style),
            Intervals((TYPICAL,), at=-0.12, beyond=BEYOND, lw=2.2, size=5.5, **style),
        ),
        panels={"": Axis("users", below=0.0)},
        row="row",
        value="users",
        labels=_labels,
        row_in=0.42,
        said=_numbers,
    )
    return chart.draw(rows.assign(row=rows["method"] + ",\n" + rows["version"]), page)


def _labels(rows: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    """Return a label for method and version of each row, in their order."""
    names = [
        f"{method},\n{version}" for method in rows["method"].unique() for version in VERSION_LOOKS
    ]
    return {name: name.replace("\n", " ") for name in names if name in set(rows["row"])}


def _numbers(rows: pd.DataFrame) -> dict[Hashable, str]:
    typical = rows[rows["what"] == TYPICAL].to_dict("records")
    return {row["row"]: _number(row) for row in typical}


def _number(row: Mapping[Hashable, Any]) -> str:
    n = f"n = {row['n']:.0f}"
    if math.isnan(row["users"]):
        return f"{AT_LEAST} {row['low']:,.0f}\n{n}" if row["low"] > 0 else f"none known\n{n}"
    interval = "" if math.isnan(row["low"]) else f" [{row['low']:,.0f}, {row['high']:,.0f}]"
    return f"{row['users']:,.0f}{interval}\n{n}"


def has_search(run: Run) -> bool:
    """Return whether a run has capacity by search."""
    return CAPACITY in set(rungs_of(run)["family"])


CAPACITY_BY_METHOD = View(
    "capacity_by_method", TITLE, capacity_table, draw_capacity, suits=has_search
)
