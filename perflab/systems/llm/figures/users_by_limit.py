"""Users when failures ended the load, over descriptors, for both versions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.methods.single_runs import scatter
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Marks, Plane, Planes, Points
from perflab.figures.evidence import trials_shown
from perflab.figures.page import Page
from perflab.figures.view import Judging, View
from perflab.numerals import number
from perflab.recordings import Run, published_value
from perflab.recordings.responses import at_least_column
from perflab.systems.llm.figures.versions import LOOKS, rungs_of
from perflab.systems.llm.preset import RESULTS, STUDY
from perflab.systems.llm.single_runs import CLAIM, judged_claims, runs_apart, verdict_on

TITLE = "users when failures ended the load, over descriptors"
TRIAL, AT_LEAST, PUBLISHED, NEEDED = "trial", "at least", "published", "needed"
SAID = "said"
PANELS = {"users": "users at failure", "share": "failure rate of a stop, %"}
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
    how: dict[str, Any] = {"by": "version", "looks": LOOKS}
    chart = Planes(
        TITLE,
        "Points: trials (hollow: refused; a triangle: fewer failed than the threshold, so at least"
        " so many users). Crosses: published, one run each, at the sockets that an event loop of"
        " Windows can hold. The failure rate is the one that a stop would print if it counted what"
        " it broke off as failed: a few failures of hundreds of requests are a few percent, not"
        f" half.{said}",
        layers=(
            Points((TRIAL,), how={"s": 22}, **how),
            Marks((AT_LEAST,), "^", hollow=True, **how),
            Marks((PUBLISHED,), "x", PUBLISHED, size=6, **how),
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
    own = table[table["what"] != SAID]
    aside = own["version"].map(ASIDE).astype(float).fillna(0.0) * float(table["limit"].max())
    own = own.assign(beside=own["limit"] + aside.where(own["what"] != PUBLISHED, 0.0))
    parts = [own.assign(panel=name, value=own[name].astype(float)) for name in PANELS]
    return pd.concat(parts, ignore_index=True)


def _planes(_: pd.DataFrame, __: Page) -> dict[str, Plane]:
    limits = Axis("descriptors that the proxy may have", below=0.0)
    return {name: Plane(limits, Axis(words, below=0.0)) for name, words in PANELS.items()}


def has_limits(run: Run) -> bool:
    """Return whether users of a run ramp up against a limit of descriptors."""
    return set(run.record.factors.get("max_files", ())) - {"enough"} != set()


USERS_BY_LIMIT = View(
    "users_by_limit", TITLE, limits_table, draw_limits, suits=has_limits,
    judging=Judging((CLAIM,), judged_claims),
)  # fmt: skip
