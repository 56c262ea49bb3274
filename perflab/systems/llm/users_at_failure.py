"""Users when failures ended the load, over descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Marks, Plane, Planes, Points
from perflab.figures.origin import TRIAL, Page, bounded, trials_shown
from perflab.figures.theme import Style, appearance
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.systems.llm.rules import CLAIM, ENOUGH, FILES, has_limits, judged_claims
from perflab.systems.llm.rungs import RESULTS, STUDY, USERS, VERSIONS

NAMES = {"old": "old: chunks are made anew", "new": "new: passed through", "raw": "raw bytes"}
VERSION_STYLES: dict[str, Style] = {
    name: Style(*appearance(place), label=NAMES[name]) for place, name in enumerate(VERSIONS)
}
AT_LEAST_STYLES = {name: replace(style, marker="^") for name, style in VERSION_STYLES.items()}
TITLE = "users when failures ended the load, over descriptors"
AT_LEAST, PUBLISHED, NEEDED, SAID = "at least", "published", "needed", "said"
PANELS = {"users": "users at failure", "share": "failure rate of a stop, %"}
FAILURE_COLUMNS = ["what", "version", "limit", "state", "users", "share", "words"]
# A proxied stream takes two descriptors: one from the client, one to the model.
FILES_PER_STREAM = 2
ASIDE = {"old": -0.012, "new": 0.012, "raw": 0.0}


def rungs_of(run: Run) -> pd.DataFrame:
    """Return treatment, its rung's ``family`` (the rung without its version), and ``version``."""
    rows = [
        (item.name, item.levels["rung"].rpartition("_")[0], item.levels["version"])
        for item in run.record.treatments
    ]
    return pd.DataFrame(rows, columns=["treatment", "family", "version"])


def limits_table(run: Run) -> pd.DataFrame:
    """Return users at failure of every trial by limit and version, and the published ones.

    ``at least``: fewer requests failed than the threshold. ``share`` is the failure rate that
    counts requests under way as failed. ``needed``: users whose streams take all descriptors.
    ``said``: the verdict on claim 3.
    """
    trials = trials_shown(run)
    if trials.empty or USERS not in trials:
        return pd.DataFrame(columns=FAILURE_COLUMNS)
    limited = trials[trials[f"factor_{FILES}"] != ENOUGH]
    points = bounded(limited, USERS, (TRIAL, AT_LEAST)).rename(columns={"value": "users"})
    points = points.assign(
        version=limited["factor_version"],
        limit=limited[f"factor_{FILES}"].astype(float),
        share=100 * limited["failure_share_broken_off"].astype(float),
    )
    (finding,) = judged_claims(run)
    verdict = finding.verdict
    claim = {"what": SAID, "words": f"{CLAIM.capitalize()} {verdict}: {verdict.reason}"}
    beside = pd.DataFrame([*_others(points), claim])
    return pd.concat([points, beside], ignore_index=True).reindex(columns=FAILURE_COLUMNS)


def _others(points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the published runs, and the users whose streams take all descriptors."""
    limit = published_value(STUDY, "system", "Windows event loop", "sockets")
    for version in ("old", "new"):
        users, share = (
            published_value(STUDY, RESULTS, version, measure)
            for measure in ("users_at_failure", "failure_rate")
        )
        row = {"what": PUBLISHED, "version": version, "limit": limit}
        yield {**row, "users": users, "share": share}
    for end in sorted({*points["limit"], limit}):
        yield {"what": NEEDED, "limit": end, "users": end / FILES_PER_STREAM}


def draw_limits(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw users over descriptors at the left, and the failure rate of a stop at the right."""
    sentences = "".join(f" {words}." for words in table.loc[table["what"] == SAID, "words"])
    style: dict[str, Any] = {"by": "version", "styles": VERSION_STYLES}
    limits = Axis("descriptors that the proxy may have", below=0.0)
    chart = Planes(
        TITLE,
        "Points: trials (hollow: refused; a triangle: fewer failed than the threshold, so at least"
        " so many users). Crosses: published, one run each, at the sockets that an event loop of"
        " Windows can hold. The failure rate is the one that a stop would print if it counted what"
        " it broke off as failed: a few failures of hundreds of requests are a few percent, not"
        f" half.{sentences}",
        layers=(
            Points((TRIAL,), how={"s": 22}, **style),
            Points((AT_LEAST,), by="version", styles=AT_LEAST_STYLES, how={"s": 22}, keyed=False),
            Marks((PUBLISHED,), "x", PUBLISHED, size=6, **style),
            Lines((NEEDED,), how={"lw": 1.0, "ls": (0, (4, 3))},
                  label="two descriptors for each user's stream"),
        ),
        planes={name: Plane(limits, Axis(words, below=0.0)) for name, words in PANELS.items()},
        panel="panel",
        x="beside",
        height_in=3.2,
        further_in=3.2,
    )  # fmt: skip
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each panel; versions at one limit stand beside each other."""
    rows = table[table["what"] != SAID]
    aside = rows["version"].map(ASIDE).astype(float).fillna(0.0) * float(table["limit"].max())
    rows = rows.assign(beside=rows["limit"] + aside.where(rows["what"] != PUBLISHED, 0.0))
    parts = [rows.assign(panel=name, value=rows[name].astype(float)) for name in PANELS]
    return pd.concat(parts, ignore_index=True)


USERS_BY_LIMIT = View(
    "users_by_limit", TITLE, limits_table, draw_limits,
    suits=has_limits,
)  # fmt: skip
