"""The proxy's CPU costs, the looks of its versions, and the families of rungs."""

from __future__ import annotations

import pandas as pd

from perflab.figures.charts import Axis, Points, RowChart, Typical
from perflab.figures.evidence import trials_shown, typical_rows
from perflab.figures.points import ARROW
from perflab.figures.theme import PALETTE, Look, appearance
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.llm.rungs import VERSIONS

TITLE = "the proxy's CPU for an answer and for a chunk"
# A response in us: the name of its panel, with the unit, and the divisor to that unit.
PANELS = {
    "server_cpu_us_per_answer": ("ms of CPU per answer", 1e3),
    "server_cpu_us_per_chunk": ("us of CPU per chunk", 1.0),
}
TRIAL, TYPICAL = "trial", "typical"
COST_LOOKS = {TRIAL: Look(PALETTE[0], "o", TRIAL)}
COLUMNS = ["panel", "what", "treatment", "state", "value", "low", "high"]
BEYOND = 1.5


def cost_table(run: Run) -> pd.DataFrame:
    """Return both costs of every trial, and their typical values with 95% intervals."""
    trials = trials_shown(run)
    parts = []
    for response in (name for name in PANELS if name in trials):
        panel, divisor = PANELS[response]
        points = trials[["treatment", "state"]].assign(value=trials[response] / divisor)
        parts.append(points.assign(panel=panel, what=TRIAL))
        typical = typical_rows(run, response).drop(columns="what")
        numbers = ["value", "low", "high"]
        typical[numbers] = typical[numbers].astype(float) / divisor
        parts.append(typical.assign(panel=panel, what=TYPICAL))
    measured = [part.dropna(subset=["value"]) for part in parts]
    measured = [part for part in measured if len(part)]
    if not measured:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(measured, ignore_index=True).reindex(columns=COLUMNS)


CHART = RowChart(
    TITLE,
    "CPU time of the proxy in the measured stage over its successes, and over their chunks."
    f" Points: trials (hollow: refused); bars: typical value with its 95% interval. {ARROW} What is"
    " not streamed has no chunks.",
    layers=(
        Points(looks=COST_LOOKS, at=-0.12, how={"s": 16}),
        Typical(of=(TYPICAL,), among=(), at=0.15),
    ),
    panels={panel: Axis(panel, below=0.0) for panel, _ in PANELS.values()},
    row_in=0.3,
)
STREAM_COSTS = View("stream_costs", TITLE, cost_table, CHART.draw)


NAMES = {"old": "old: chunks are made anew", "new": "new: passed through", "raw": "raw bytes"}
VERSION_LOOKS: dict[str, Look] = {
    name: Look(*appearance(place), label=NAMES[name]) for place, name in enumerate(VERSIONS)
}


def rungs_of(run: Run) -> pd.DataFrame:
    """Return treatment, its rung's ``family`` (the rung without its version), and ``version``."""
    rows = [
        {
            "treatment": treatment.name,
            "family": treatment.levels["rung"].rpartition("_")[0],
            "version": treatment.levels["version"],
        }
        for treatment in run.record.treatments
    ]
    return pd.DataFrame(rows, columns=["treatment", "family", "version"])
