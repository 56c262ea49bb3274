"""The views of runs in which the lab checks itself and its clients."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from perflab.figures import OF_REQUESTS, rate_view
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, RowChart, Rules
from perflab.figures.origin import Page
from perflab.figures.plots.effect_rows import limits
from perflab.figures.theme import INK, PALETTE, Style
from perflab.figures.view import View
from perflab.systems.lab.resolution import FACTOR, known_effects

CLIENT_COST = rate_view(
    "client_cost",
    "what each client costs and reports as the load grows",
    {
        "p95_ms": "reported p95, ms (log)",
        "client_cpu_us_per_request": "client CPU per request, us (log)",
    },
)


MEASURED, TRUTH, SAME = "measured", "truth", "same"
STYLES = {MEASURED: Style(PALETTE[0], "o", MEASURED)}
# The axis reaches at least this far on both sides of 1, even if all copies are alike.
LEAST = 0.02
EXPERIMENT = "lab_check"
EFFECT_TITLE = "what was planted, and what the lab found"
EFFECT_COLUMNS = ["service", "expected", "estimate", "low", "high"]


def draw_known_effects(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each service's response over the first copy's, with its true value."""
    within = _shown(table)
    chart = RowChart(
        EFFECT_TITLE,
        "Mean response time against that of copy A1: estimate over all blocks with its 95% interval"
        " (an arrow: it goes on). A copy is the same service; the others work longer by a known"
        " share.",
        layers=(
            Rules((SAME,), ls="-"),
            Intervals((MEASURED,), within=within, by="what", styles=STYLES, size=5),
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
    "known_effects", EFFECT_TITLE, lambda run: known_effects(run)[EFFECT_COLUMNS],
    draw_known_effects,
    suits=lambda run: run.record.experiment == EXPERIMENT and FACTOR in run.record.factors,
)  # fmt: skip

VIEWS = (*OF_REQUESTS, CLIENT_COST, KNOWN_EFFECTS)
