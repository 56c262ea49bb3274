"""What a request consists of, on the client's clock, beside what was published."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, RowChart, Stack
from perflab.figures.origin import Page
from perflab.figures.view import View, varies
from perflab.recordings import Run, published_value
from perflab.statistics.in_words import as_share
from perflab.statistics.quantiles import t_interval
from perflab.systems.metricstream.connection_cost import PARTS
from perflab.systems.metricstream.rungs import OTHERS, STUDY

PARTS_TITLE = "what a request consists of, on the client's clock"
MEASURED, PUBLISHED, WHOLE_REQUEST = "measured", "published", "whole"
CONNECTING = "connecting"
# In place of a missing bar.
NOTHING = "no valid trial with posts of the lab's client"
COLORS = {
    "connect": "#101840",
    "send": "#99CCEE",
    "wait": "#117766",
    "receive": "#F0DD88",
    "close": "#DC668A",
}
# The study's name of each part that it has, too.
STATED = {"connect": "connection_setup", "wait": "processing", "close": "teardown"}
SHARES = "shares of one request, as stated"
# The end of each published range in a bar: with the least connecting, or the most.
ENDS = {
    "published: least connecting": {"connect": "low", "wait": "high", "close": "high"},
    "published: most connecting": {"connect": "high", "wait": "low", "close": "low"},
}
PARTS_COLUMNS = ["what", "treatment", "part", "value", "low", "high", "n"]
TICKS = {share / 5: f"{share / 5:.0%}" for share in range(6)}


def parts_table(run: Run) -> pd.DataFrame:
    """Return the share of every part by treatment, then the published ones.

    ``value`` is the mean over the valid trials, for ``connect`` with its 95% t interval and the
    number of trials; for ``whole`` it is the parts' sum in ms. There are no rows if no trial has
    parts.
    """
    valid = run.valid_trials()
    if valid.empty or "part_connect_share" not in valid:
        return pd.DataFrame(columns=PARTS_COLUMNS)
    rows: list[dict[str, Any]] = []
    # Trials with another load generator have no posts of the lab's own.
    with_posts = valid.dropna(subset="part_connect_ms")
    for name, trials in with_posts.groupby("treatment", sort=False):
        whole_ms = trials[[f"part_{part}_ms" for part in PARTS]].sum(axis=1, skipna=False).mean()
        rows += [_share(str(name), part, trials[f"part_{part}_share"]) for part in PARTS]
        rows.append({"what": MEASURED, "treatment": name, "part": WHOLE_REQUEST, "value": whole_ms})
    return pd.DataFrame([*rows, *_parts_published()], columns=PARTS_COLUMNS)


def _share(name: str, part: str, of_trials: pd.Series[float]) -> dict[str, Any]:
    row = {"what": MEASURED, "treatment": name, "part": part, "value": float(of_trials.mean())}
    if part != "connect":
        return row
    low, high = t_interval(of_trials.to_numpy(float))
    # Student's interval over few trials may reach beyond 0 or 1.
    return {**row, "low": max(low, 0.0), "high": min(high, 1.0), "n": len(of_trials)}


def _parts_published() -> Iterator[dict[str, Any]]:
    for name, ends in ENDS.items():
        for part, end in ends.items():
            share = published_value(STUDY, OTHERS, SHARES, f"{STATED[part]}_{end}") / 100
            yield {"what": PUBLISHED, "treatment": name, "part": part, "value": share}


def draw_parts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a stacked bar per treatment, and one for either end of the published ranges."""
    connecting = table[(table["part"] == "connect") & (table["what"] == MEASURED)]
    parts = [table, connecting.assign(what=CONNECTING, part="")]
    return PARTS_CHART.draw(pd.concat(parts, ignore_index=True), page)


def _labels(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:
    labels: dict[Hashable, str] = {name: style.label for name, style in page.styles.items()}
    return labels | {name: name for name in ENDS if name in set(table["treatment"])}


def _part_words(part: str) -> str:
    if part == "send":
        return "send, or wait for a free connection"
    return f"{part} (published: {STATED[part].replace('_', ' ')})" if part in STATED else part


def _parts_said(table: pd.DataFrame) -> dict[Hashable, str]:
    """Return the shares of connecting with their intervals, and the sums of all parts."""
    wholes = table[table["part"] == WHOLE_REQUEST].set_index("treatment")["value"]
    connecting = table[table["what"] == CONNECTING].to_dict("records")
    return {row["treatment"]: _numbers(row, wholes[row["treatment"]]) for row in connecting}


def _numbers(row: Mapping[Hashable, Any], whole_ms: float) -> str:
    has_interval = math.isfinite(row["low"])
    interval = (
        f" [{as_share(row['low'], 1)}, {as_share(row['high'], 1)}]"
        if has_interval
        else ", no interval"
    )
    return f"connect {as_share(row['value'], 1)}{interval}\n{whole_ms:.3g} ms, n = {row['n']:.0f}"


PARTS_CHART = RowChart(
    PARTS_TITLE,
    "Mean shares of valid trials, successful requests. In numbers: share of connecting with its 95%"
    " t interval over trials (drawn above the bar), and the parts' sum. Published are ranges, of"
    " another machine, client and load; their upper ends exceed 100%.",
    layers=(
        Stack(COLORS, words="{:.0%}".format, labels={part: _part_words(part) for part in COLORS}),
        Intervals((CONNECTING,), at=-0.37, within=(0.0, 1.0), size=0),
    ),
    panels={"": Axis("share of a request's time", ends=(0, 1.12), ticks=TICKS)},
    labels=_labels,
    row_in=0.36,
    said=_parts_said,
    nothing=NOTHING,
)
LIFE_CYCLE_PARTS = View(
    "life_cycle_parts",
    PARTS_TITLE,
    parts_table,
    draw_parts,
    varies("rung", "connection", "keep_alive"),
)
