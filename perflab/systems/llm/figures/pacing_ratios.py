"""New over old with and without pacing, and by what factor the one without misleads."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.treatments.evaluation import Finding, evaluate
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, RowChart, Rules
from perflab.figures.intervals import ARROW
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots.ratios import limits, marks
from perflab.figures.plots.ratios import number as ratio_words
from perflab.figures.theme import INK
from perflab.figures.view import View
from perflab.numerals import number
from perflab.recordings import Run
from perflab.systems.llm.claims import CORES, MEAN, RATE, WORDS

TITLE = "new over old, with and without pacing"
PACED, UNPACED, FACTOR = "constant cycle", "no pacing", "factor between them"
LOOKS = {
    PACED: Look(PALETTE[0], "o", PACED),
    UNPACED: Look(PALETTE[1], "s", UNPACED),
    FACTOR: Look(PALETTE[3], "D", FACTOR),
}
RESPONSES = (RATE, CORES, MEAN)
COLUMNS = ["response", "what", "ratio", "low", "high", "n", "verdict"]
SAME = "same"
ROW_IN = 0.42
LEAST = 0.1
WIDTH_IN = 3.3


def pacing_table(run: Run) -> pd.DataFrame:
    """Return the ratio new over old by response, in both loads, and the factor between them.

    With 95% intervals, blocks and verdicts as everywhere (:mod:`perflab.analysis`). Requests per
    second have no factor: with a constant cycle the load sets them.
    """
    told = [
        {
            "response": WORDS[each.contrast.response],
            "what": what,
            "ratio": each.effect.estimate,
            "low": each.effect.low,
            "high": each.effect.high,
            "n": each.effect.n,
            "verdict": str(each.verdict),
        }
        for each in evaluate(run)
        if (what := _what(each)) and each.contrast.response in RESPONSES and each.effect
    ]
    return pd.DataFrame(told, columns=COLUMNS)


def _what(finding: Finding) -> str:
    """Return which of the three a finding is; empty of any other."""
    if finding.contrast.interaction is not None:
        return FACTOR if finding.contrast.name.startswith("pacing x") else ""
    named = {"paced_new": PACED, "unpaced_new": UNPACED}
    return named.get(finding.contrast.numerator.get("rung", ""), "")


def draw_pacing(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per response and load, the numbers and the verdict at the right."""
    ends = table[["low", "high"]].to_numpy(float).ravel()
    low, high = limits(np.log(table["ratio"]), np.log(ends[ends > 0]), LEAST)
    within = (math.exp(low), math.exp(high))
    places = marks(*within, WIDTH_IN)
    ticks = {each: ratio_words(each) for each in places}
    chart = RowChart(
        TITLE,
        "The same two versions and the same fast model, once with a constant cycle and once without"
        " pacing. Bars: 95% intervals over blocks. The factor is the ratio without pacing over the"
        f" one with it: 1 would say that pacing changes nothing. {ARROW}",
        layers=(
            Rules((SAME,), color=INK, ls="-"),
            Intervals((*LOOKS,), within=within, by="what", looks=LOOKS, size=5),
        ),
        panels={"": Axis("new over old (log)", log=True, ends=within, ticks=ticks)},
        row="row",
        value="ratio",
        labels=_labels,
        row_in=ROW_IN,
        said=_said,
    )
    same = pd.DataFrame([{"what": SAME, "ratio": 1.0}])
    rows = table.assign(row=table["response"] + ",\n" + table["what"])
    return chart.draw(pd.concat([rows, same], ignore_index=True), page)


def _labels(table: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    """Return a row for each response in each load, in their order."""
    responses = table["response"].dropna().unique()
    names = [f"{response},\n{what}" for response in responses for what in LOOKS]
    return {name: name.replace("\n", " ") for name in names if name in set(table["row"])}


def _said(table: pd.DataFrame) -> dict[Hashable, str]:
    own = table[table["what"] != SAME].to_dict("records")
    return {row["row"]: f"{_interval(row)}\n{row['verdict']}" for row in own}


def _interval(row: Mapping[Hashable, Any]) -> str:
    if not math.isfinite(row["low"]):
        return f"{number(row['ratio'])}, n = {row['n']:.0f}"
    between = f"[{number(row['low'])}, {number(row['high'])}]"
    return f"{number(row['ratio'])} {between}, n = {row['n']:.0f}"


def has_both(run: Run) -> bool:
    """Return whether a run has versions with and without pacing."""
    rungs = {item.levels.get("rung") for item in run.record.treatments}
    return {"paced_new", "unpaced_new"} <= rungs


PACING_RATIOS = View("pacing_ratios", TITLE, pacing_table, draw_pacing, suits=has_both)
