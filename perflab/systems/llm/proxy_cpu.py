"""The proxy's CPU for an answer and for a chunk."""

from __future__ import annotations

import pandas as pd

from perflab.figures.charts import Axis, Points, RowChart, Typical
from perflab.figures.origin import trials_shown, typical_rows
from perflab.figures.theme import PALETTE, Style
from perflab.figures.view import ARROW, View
from perflab.recordings import Run

COST_TITLE = "the proxy's CPU for an answer and for a chunk"
# A response in us: the name of its panel, with the unit, and the divisor to that unit.
COST_PANELS = {
    "server_cpu_us_per_answer": ("ms of CPU per answer", 1e3),
    "server_cpu_us_per_chunk": ("us of CPU per chunk", 1.0),
}
TRIAL, TYPICAL = "trial", "typical"
COST_STYLES = {TRIAL: Style(PALETTE[0], "o", TRIAL)}
COST_COLUMNS = ["panel", "what", "treatment", "state", "value", "low", "high"]
COST_CHART = RowChart(
    COST_TITLE,
    "CPU time of the proxy in the measured stage over its successes, and over their chunks."
    f" Points: trials (hollow: refused); bars: typical value with its 95% interval. {ARROW} What is"
    " not streamed has no chunks.",
    layers=(
        Points(styles=COST_STYLES, at=-0.12, how={"s": 16}),
        Typical(of=(TYPICAL,), among=(), at=0.15),
    ),
    panels={panel: Axis(panel, below=0.0) for panel, _ in COST_PANELS.values()},
    row_in=0.3,
)


def cost_table(run: Run) -> pd.DataFrame:
    """Return both costs of every trial, and their typical values with 95% intervals."""
    trials = trials_shown(run)
    parts = []
    for response, (panel, divisor) in COST_PANELS.items():
        values = trials.reindex(columns=[response])[response].astype(float) / divisor
        points = trials[["treatment", "state"]].assign(value=values)
        parts.append(points.assign(panel=panel, what=TRIAL))
        typical = typical_rows(run, response).drop(columns="what")
        numbers = ["value", "low", "high"]
        typical[numbers] = typical[numbers].astype(float) / divisor
        parts.append(typical.assign(panel=panel, what=TYPICAL))
    measured = [part.dropna(subset=["value"]) for part in parts]
    measured = [part for part in measured if len(part)]
    if not measured:
        return pd.DataFrame(columns=COST_COLUMNS)
    return pd.concat(measured, ignore_index=True).reindex(columns=COST_COLUMNS)


STREAM_COSTS = View("stream_costs", COST_TITLE, cost_table, COST_CHART.draw)
