"""Capacity by search and by failures, and users at failure over descriptors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.validity import typical_values
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Marks, Plane, Planes, Points, RowChart
from perflab.figures.evidence import trials_shown
from perflab.figures.origin import Page
from perflab.figures.points import ARROW
from perflab.figures.view import Judging, View
from perflab.recordings import Run, published_value
from perflab.recordings.responses import at_least_column
from perflab.statistics.in_words import number
from perflab.statistics.single_runs import scatter
from perflab.systems.llm.capacity_methods import (
    CLAIM,
    Method,
    agreement,
    judged_claims,
    methods,
    runs_apart,
    verdict_on,
)
from perflab.systems.llm.figures.costs import VERSION_LOOKS, rungs_of
from perflab.systems.llm.rungs import RESULTS, STUDY

METHOD_TITLE = "capacity by search and by failures"
METHOD_TRIAL, METHOD_AT_LEAST, TYPICAL, METHOD_SAID = "trial", "at least", "typical value", "said"
METHOD_COLUMNS = ["what", "method", "version", "state", "users", "low", "high", "n", "words"]
ROW_IN = 0.42
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
        return pd.DataFrame(columns=METHOD_COLUMNS)
    with_rungs = trials.merge(rungs_of(run), on="treatment")
    of_run = methods(run)
    rows = [row for method in of_run for row in _of_method(method, with_rungs)]
    sentences = [*(method.sentence for method in of_run), agreement(of_run)]
    rows += [{"what": METHOD_SAID, "words": words} for words in sentences]
    return pd.DataFrame(rows, columns=METHOD_COLUMNS)


def _of_method(method: Method, trials: pd.DataFrame) -> Iterator[dict[str, Any]]:
    column, bound = method.response, at_least_column(method.response)
    of_method = trials[trials["family"] == method.stem].reindex(
        columns=["version", "state", column, bound]
    )
    for row in of_method.to_dict("records"):
        is_known = pd.notna(row[column])
        users = row[column] if is_known else row[bound]
        what = METHOD_TRIAL if is_known else METHOD_AT_LEAST
        yield {"what": what, "method": method.words, "version": row["version"],
               "state": row["state"], "users": float(users)}  # fmt: skip
    for version, valid in of_method[of_method["state"] == "valid"].groupby("version"):
        typical = typical_values(valid.astype({column: float, bound: float}), [column])
        yield {"what": TYPICAL, "method": method.words, "version": version,
               "users": typical[column], "low": typical[f"{column}_low"],
               "high": typical[f"{column}_high"], "n": typical[f"{column}_n"]}  # fmt: skip


def draw_capacity(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per method and version, its number at the right."""
    sentences = "".join(
        f" {text[:1].upper()}{text[1:]}."
        for text in table.loc[table["what"] == METHOD_SAID, "words"]
    )
    rows = table[table["what"] != METHOD_SAID]
    style: dict[str, Any] = {"by": "version", "looks": VERSION_LOOKS}
    chart = RowChart(
        METHOD_TITLE,
        "By search: the most users that hold the objectives. By failures: the users at which"
        " failures ended a ramp. Small points: trials (hollow: refused; a triangle: at least so"
        f" many); bars: typical values with 95% intervals over blocks. {ARROW}{sentences}",
        layers=(
            Points((METHOD_TRIAL,), at=0.2, how={"s": 10}, keyed=False, **style),
            Marks((METHOD_AT_LEAST,), "^", METHOD_AT_LEAST, hollow=True, at=0.2, **style),
            Intervals((TYPICAL,), at=-0.12, beyond=BEYOND, lw=2.2, size=5.5, **style),
        ),
        panels={"": Axis("users", below=0.0)},
        row="row",
        value="users",
        labels=_labels,
        row_in=ROW_IN,
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
    if np.isnan(row["users"]):
        return f"{METHOD_AT_LEAST} {row['low']:,.0f}\n{n}" if row["low"] > 0 else f"none known\n{n}"
    interval = "" if np.isnan(row["low"]) else f" [{row['low']:,.0f}, {row['high']:,.0f}]"
    return f"{row['users']:,.0f}{interval}\n{n}"


def has_search(run: Run) -> bool:
    """Return whether a run has capacity by search."""
    rungs = [treatment.levels.get("rung", "") for treatment in run.record.treatments]
    return any(rung.startswith("capacity_") for rung in rungs)


CAPACITY_BY_METHOD = View(
    "capacity_by_method", METHOD_TITLE, capacity_table, draw_capacity, suits=has_search
)


LIMIT_TITLE = "users when failures ended the load, over descriptors"
LIMIT_TRIAL, LIMIT_AT_LEAST, PUBLISHED, NEEDED = "trial", "at least", "published", "needed"
LIMIT_SAID = "said"
PANELS = {"users": "users at failure", "share": "failure rate of a stop, %"}
LIMIT_COLUMNS = ["what", "version", "limit", "state", "users", "share", "words"]
# A proxied stream takes two descriptors: one from the client, one to the model.
FILES_PER_STREAM = 2
ASIDE = {"old": -0.012, "new": 0.012, "raw": 0.0}


def limits_table(run: Run) -> pd.DataFrame:
    """Return users at failure of every trial by limit and version, and the published ones.

    ``at least``: fewer requests failed than the threshold. ``share`` is the failure rate that
    counts requests under way as failed. ``needed``: users whose streams take all descriptors.
    ``said``: how far two single runs of the same proxy lie apart
    (:mod:`perflab.statistics.single_runs`).
    """
    trials = trials_shown(run)
    if trials.empty or "users_at_stop" not in trials:
        return pd.DataFrame(columns=LIMIT_COLUMNS)
    limited = trials[trials["factor_max_files"] != "enough"].merge(rungs_of(run), on="treatment")
    bound = limited.get(at_least_column("users_at_stop"), pd.Series(np.nan, index=limited.index))
    is_bound = limited["users_at_stop"].isna() & bound.notna()
    points = pd.DataFrame(
        {
            "what": np.where(is_bound, LIMIT_AT_LEAST, LIMIT_TRIAL),
            "version": limited["version"],
            "limit": limited["factor_max_files"].astype(float),
            "state": limited["state"],
            "users": limited["users_at_stop"].fillna(bound).astype(float),
            "share": 100 * limited["failure_share_broken_off"].astype(float),
        }
    )
    beside = pd.DataFrame([*_others(points), *_scatters(points), _claim(run)])
    return pd.concat([points, beside], ignore_index=True).reindex(columns=LIMIT_COLUMNS)


def _scatters(points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield sentences on how far two single runs of the same kind lie apart."""
    valid = points[points["state"] == "valid"]
    for (limit, version), of_kind in valid.groupby(["limit", "version"]):
        spread = scatter(of_kind["users"].where(of_kind["what"] == LIMIT_TRIAL).tolist())
        if math.isfinite(spread.smallest_difference):
            words = (
                f"{limit:g} descriptors, {version}: two single runs lie up to"
                f" {number(spread.smallest_difference)} users apart (mean {number(spread.mean)},"
                f" n = {spread.n})"
            )
            yield {"what": LIMIT_SAID, "version": version, "limit": limit, "words": words}


def _claim(run: Run) -> dict[str, Any]:
    """Return the verdict on claim 3 in words."""
    verdict = verdict_on(runs_apart(run))
    return {"what": LIMIT_SAID, "words": f"{CLAIM.capitalize()} {verdict}: {verdict.reason}"}


def _others(points: pd.DataFrame) -> list[dict[str, Any]]:
    limit = published_value(STUDY, "system", "Windows event loop", "sockets")
    published = [
        {
            "what": PUBLISHED, "version": version, "limit": limit,
            "users": published_value(STUDY, RESULTS, version, "users_at_failure"),
            "share": published_value(STUDY, RESULTS, version, "failure_rate"),
        }
        for version in ("old", "new")
    ]  # fmt: skip
    ends = sorted({*points["limit"], limit})
    return [
        *published,
        *({"what": NEEDED, "limit": end, "users": end / FILES_PER_STREAM} for end in ends),
    ]


def draw_limits(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw users over descriptors at the left, and the failure rate of a stop at the right."""
    sentences = "".join(f" {words}." for words in table.loc[table["what"] == LIMIT_SAID, "words"])
    style: dict[str, Any] = {"by": "version", "looks": VERSION_LOOKS}
    chart = Planes(
        LIMIT_TITLE,
        "Points: trials (hollow: refused; a triangle: fewer failed than the threshold, so at least"
        " so many users). Crosses: published, one run each, at the sockets that an event loop of"
        " Windows can hold. The failure rate is the one that a stop would print if it counted what"
        " it broke off as failed: a few failures of hundreds of requests are a few percent, not"
        f" half.{sentences}",
        layers=(
            Points((LIMIT_TRIAL,), how={"s": 22}, **style),
            Marks((LIMIT_AT_LEAST,), "^", hollow=True, **style),
            Marks((PUBLISHED,), "x", PUBLISHED, size=6, **style),
            Lines((NEEDED,), how={"lw": 1.0, "ls": (0, (4, 3))},
                  label="two descriptors for each user's stream"),
        ),
        planes=_planes,
        panel="panel",
        x="beside",
        height_in=3.2,
        further_in=3.2,
    )  # fmt: skip
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each panel; versions at one limit stand beside each other."""
    rows = table[table["what"] != LIMIT_SAID]
    aside = rows["version"].map(ASIDE).astype(float).fillna(0.0) * float(table["limit"].max())
    rows = rows.assign(beside=rows["limit"] + aside.where(rows["what"] != PUBLISHED, 0.0))
    parts = [rows.assign(panel=name, value=rows[name].astype(float)) for name in PANELS]
    return pd.concat(parts, ignore_index=True)


def _planes(_: pd.DataFrame, __: Page) -> dict[str, Plane]:
    limits = Axis("descriptors that the proxy may have", below=0.0)
    return {name: Plane(limits, Axis(words, below=0.0)) for name, words in PANELS.items()}


def has_limits(run: Run) -> bool:
    """Return whether a run has users who ramp up against a limit of descriptors."""
    return set(run.record.factors.get("max_files", ())) - {"enough"} != set()


USERS_BY_LIMIT = View(
    "users_by_limit", LIMIT_TITLE, limits_table, draw_limits, suits=has_limits,
    judging=Judging((CLAIM,), judged_claims),
)  # fmt: skip
