"""Users when failures ended the load, over descriptors, for both versions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.methods.single_runs import scatter
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas, panels
from perflab.figures.evidence import trials_shown
from perflab.figures.page import Page
from perflab.figures.points import draw_points
from perflab.figures.theme import MUTED
from perflab.figures.view import Judging, View
from perflab.numerals import number
from perflab.recordings import Run, published_value
from perflab.recordings.responses import at_least_column
from perflab.systems.llm.figures.versions import LOOKS, key, rungs_of
from perflab.systems.llm.preset import RESULTS, STUDY
from perflab.systems.llm.single_runs import CLAIM, judged_claims, runs_apart, verdict_on

TITLE = "users when failures ended the load, over descriptors"
TRIAL, AT_LEAST, PUBLISHED, NEEDED = "trial", "at least", "published", "needed"
SAID = "said"
COLUMNS = ["what", "version", "limit", "state", "users", "share", "words"]
# A proxied stream takes two: one from the client, one to the model.
EACH = 2
ASIDE = {"old": -0.012, "new": 0.012, "raw": 0.0}


def limits_table(run: Run) -> pd.DataFrame:
    """Return users at failure of every trial by limit and version, and what was published.

    ``at least``: fewer failed than the threshold. ``share`` is the failure rate that counts what
    was under way as failed. ``needed``: users whose streams take all descriptors. ``said``: how
    far two single runs of one and the same proxy lie apart (:mod:`~.methods.single_runs`).
    """
    trials = trials_shown(run)
    if trials.empty or "users_at_stop" not in trials:
        return pd.DataFrame(columns=COLUMNS)
    own = trials[trials["factor_max_files"] != "enough"].merge(rungs_of(run), on="treatment")
    bound = own.get(at_least_column("users_at_stop"), pd.Series(np.nan, index=own.index))
    is_bound = own["users_at_stop"].isna() & bound.notna()
    points = pd.DataFrame(
        {
            "what": np.where(is_bound, AT_LEAST, TRIAL),
            "version": own["version"],
            "limit": own["factor_max_files"].astype(float),
            "state": own["state"],
            "users": own["users_at_stop"].fillna(bound).astype(float),
            "share": 100 * own["failure_share_broken_off"].astype(float),
        }
    )
    others = pd.DataFrame([*_others(points), *_scatters(points), _claim(run)])
    return pd.concat([points, others], ignore_index=True).reindex(columns=COLUMNS)


def _scatters(points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield in words what one run more of each kind would say by itself."""
    valid = points[points["state"] == "valid"]
    for (limit, version), own in valid.groupby(["limit", "version"]):
        found = scatter(own["users"].where(own["what"] == TRIAL).tolist())
        if math.isfinite(found.smallest_difference):
            words = (
                f"{limit:g} descriptors, {version}: two single runs lie up to"
                f" {number(found.smallest_difference)} users apart (mean {number(found.mean)},"
                f" n = {found.n})"
            )
            yield {"what": SAID, "version": version, "limit": limit, "words": words}


def _claim(run: Run) -> dict[str, Any]:
    """Return the verdict on claim 3 in words."""
    verdict = verdict_on(runs_apart(run))
    return {"what": SAID, "words": f"{CLAIM.capitalize()} {verdict}: {verdict.reason}"}


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
    return [*published, *({"what": NEEDED, "limit": end, "users": end / EACH} for end in ends)]


def draw_limits(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw users over descriptors at the left, and the failure rate of a stop at the right."""
    said = "".join(f" {words}." for words in table.loc[table["what"] == SAID, "words"])
    grid = page.sheet.grid(2, across=2, least_in=2.0)
    where = "At the right" if grid.across == 2 else "Below"
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.2) * grid.down,
        subtitle="Points: trials (hollow: refused; a triangle: fewer failed than the threshold, so"
        " at least so many users). Crosses: published, one run each, at the sockets that an event"
        f" loop of Windows can hold. {where} the failure rate that a stop would print if it"
        " counted what it broke off as failed: a few failures of hundreds of requests are a few"
        f" percent, not half.{said}",
        key=[*key(table[table["what"] == TRIAL]), *_key()],
    )
    left, right = panels(figure, grid)
    for axes, column in ((left, "users"), (right, "share")):
        _draw(axes, table, column)
        axes.set_xlabel("descriptors that the proxy may have")
        axes.set_ylim(0, 1.1 * float(np.nanmax([1.0, *table[column].astype(float)])))
        only_grid(axes, "y")
    needed = table[table["what"] == NEEDED]
    left.plot(needed["limit"], needed["users"], color=MUTED, lw=1.0, ls=(0, (4, 3)))
    left.set_ylabel("users at failure")
    right.set_ylabel("failure rate of a stop, %")
    return finish(figure)


def _draw(axes: Axes, table: pd.DataFrame, column: str) -> None:
    own = table[table["what"].isin([TRIAL, AT_LEAST])]
    # Versions at one limit beside each other.
    widest = float(table["limit"].max())
    own = own.assign(x=own["limit"] + own["version"].map(ASIDE).astype(float) * widest)
    draw_points(axes, own[own["what"] == TRIAL], "x", column, "version", LOOKS, s=22)
    bound = own[own["what"] == AT_LEAST]
    for row in bound.to_dict("records"):
        axes.plot([row["x"]], [row[column]], marker="^", ms=5, ls="", mfc="white",
                  mec=LOOKS[row["version"]].color)  # fmt: skip
    for row in table[table["what"] == PUBLISHED].to_dict("records"):
        axes.plot([row["limit"]], [row[column]], marker="x", ms=6, mew=1.6, ls="",
                  color=LOOKS[row["version"]].color)  # fmt: skip
    axes.set_xlim(0, 1.08 * widest)


def _key() -> list[Line2D]:
    return [
        Line2D([], [], ls="", marker="x", ms=5, color=MUTED, label=PUBLISHED),
        Line2D([], [], color=MUTED, lw=1.0, ls=(0, (4, 3)),
               label="two descriptors for each user's stream"),
    ]  # fmt: skip


def has_limits(run: Run) -> bool:
    """Return whether users of a run ramp up against a limit of descriptors."""
    return set(run.record.factors.get("max_files", ())) - {"enough"} != set()


USERS_BY_LIMIT = View(
    "users_by_limit", TITLE, limits_table, draw_limits, suits=has_limits,
    judging=Judging((CLAIM,), judged_claims),
)  # fmt: skip
