"""The proxy's CPU for an answer and for a chunk."""

from __future__ import annotations

import pandas as pd

from perflab.figures.charts import TRIAL, Axis, Points, RowChart, Typical
from perflab.figures.origin import trials_and_typical
from perflab.figures.theme import PALETTE, Style
from perflab.figures.view import ARROW, View
from perflab.recordings import Run

COST_TITLE = "the proxy's CPU for an answer and for a chunk"
# A response in us: the name of its panel, with the unit, and the divisor to that unit.
COST_PANELS = {
    "server_cpu_us_per_answer": ("ms of CPU per answer", 1e3),
    "server_cpu_us_per_chunk": ("us of CPU per chunk", 1.0),
}
COST_STYLES = {TRIAL: Style(PALETTE[0], "o", TRIAL)}
COST_COLUMNS = ["panel", "what", "treatment", "state", "value", "low", "high"]
COST_CHART = RowChart(
    COST_TITLE,
    "CPU time of the proxy in the measured stage over its successes, and over their chunks."
    f" Points: trials (hollow: refused); bars: typical value with its 95% interval. {ARROW} What is"
    " not streamed has no chunks.",
    layers=(
        Points(styles=COST_STYLES, at=-0.12, how={"s": 16}),
        Typical(among=(), at=0.15),
    ),
    panels={panel: Axis(panel, below=0.0) for panel, _ in COST_PANELS.values()},
    row_in=0.3,
)


def cost_table(run: Run) -> pd.DataFrame:
    """Return both costs of every trial, and their typical values with 95% intervals."""
    return trials_and_typical(run, COST_PANELS)[COST_COLUMNS]


STREAM_COSTS = View("stream_costs", COST_TITLE, cost_table, COST_CHART.draw)
