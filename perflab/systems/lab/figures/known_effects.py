"""What the lab found beside what was planted: estimates, intervals and truths."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from perflab.errors import AnalysisError
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, RowChart, Rules
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots.ratios import limits
from perflab.figures.theme import INK
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.lab.resolution import FACTOR, known_effects

MEASURED, TRUTH, SAME = "measured", "truth", "same"
LOOKS = {MEASURED: Look(PALETTE[0], "o", MEASURED)}
# Copies that are all alike show at least this much on both sides of 1.
LEAST = 0.02
EXPERIMENT = "lab_check"
TITLE = "what was planted, and what the lab found"
COLUMNS = ["service", "expected", "estimate", "low", "high"]


def known_effects_table(run: Run) -> pd.DataFrame:
    """Return each service's response against the first copy's, with what was expected of it."""
    try:
        return known_effects(run)[COLUMNS]
    except AnalysisError:
        return pd.DataFrame(columns=COLUMNS)


def has_planted(run: Run) -> bool:
    """Return whether the lab checked itself in a run."""
    return run.record.experiment == EXPERIMENT and FACTOR in run.record.factors


def draw_known_effects(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each service's response against the first copy's, with its truth."""
    within = _shown(table)
    chart = RowChart(
        TITLE,
        "Mean response time against that of copy A1: estimate over all blocks with its 95% interval"
        " (an arrow: it goes on). A copy is the same service; the others work longer by a known"
        " share.",
        layers=(
            Rules((SAME,), ls="-"),
            Intervals((MEASURED,), within=within, by="what", looks=LOOKS, size=5),
            Marks((TRUTH,), "|", TRUTH, color=INK, size=13),
        ),
        panels={"": Axis("ratio of mean response time", ends=within)},
        row="service",
        value="estimate",
        labels=_labels,
        row_in=0.3,
    )
    parts = [
        table.assign(what=MEASURED),
        table.assign(what=TRUTH, estimate=table["expected"]),
        pd.DataFrame([{"what": SAME, "estimate": 1.0}]),
    ]
    return chart.draw(pd.concat(parts, ignore_index=True), page)


def _shown(table: pd.DataFrame) -> tuple[float, float]:
    values = table[["estimate", "expected"]].to_numpy(float).ravel() - 1
    ends = table[["low", "high"]].to_numpy(float).ravel() - 1
    low, high = limits(values, ends, least=LEAST)
    return 1 + low, 1 + high


def _labels(table: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    services = table.loc[table["what"] == MEASURED, "service"]
    return {name: f"{name} (a copy)" if name[0] == "A" else f"{name} work" for name in services}


KNOWN_EFFECTS = View(
    "known_effects", TITLE, known_effects_table, draw_known_effects, suits=has_planted
)
