"""Throughput of every trial, with typical values."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import (
    TRIAL,
    Axis,
    Intervals,
    Layer,
    Marks,
    Points,
    RowChart,
)
from perflab.figures.origin import TYPICAL, Page, in_words, typical_rows
from perflab.figures.theme import FAINT
from perflab.figures.view import ARROW, View, reach
from perflab.recordings import Run

TITLE = "throughput per treatment, every trial a point"
SUBTITLE = (
    "Every point is one trial, the first block on top; a grey line joins two trials of one block"
    " that are compared. Hollow: an invalid trial, which is not compared."
)
FAILED, ALONE = "failed", "one trial"
AXIS = "throughput, successful responses per second"
BAND = (-0.34, 0.12)
TYPICAL_AT = 0.32
# An interval ends in an arrow at this many times the fastest trial.
BEYOND = 1.3
THROUGHPUT_COLUMNS = ["what", "treatment", "block", "state", "throughput_rps", "low", "high", "n"]


def throughput_table(run: Run) -> pd.DataFrame:
    """Return the trials that were not superseded, and the typical value of each treatment.

    Failed and invalid trials are included, with their state. ``what`` is "trial", or the statistic
    of a typical value, which has a 95% interval and a number of trials. The table has no rows if no
    trial has a throughput.
    """
    trials = run.current_trials()
    if "throughput_rps" not in trials or not np.isfinite(trials["throughput_rps"]).any():
        return pd.DataFrame(columns=THROUGHPUT_COLUMNS)
    typical = typical_rows(run, "throughput_rps").rename(columns={"value": "throughput_rps"})
    trials = trials.assign(what=TRIAL).sort_values(["block", "position", "attempt"])
    shown = [part for part in (trials, typical) if len(part)]
    return pd.concat(shown, ignore_index=True).reindex(columns=THROUGHPUT_COLUMNS)


@dataclass(frozen=True)
class Joined(Layer):
    """A layer of faint lines between the valid trials of a block that a claim compares."""

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:
        """Draw the lines; only valid trials enter a comparison."""
        valid = rows[(rows["state"] == "valid") & np.isfinite(rows["value"])]
        values = (valid[name] for name in ("block", "treatment", "value", "y"))
        points = {(block, name): (x, y) for block, name, x, y in zip(*values, strict=True)}
        lines = [
            [points[block, one], points[block, other]]
            for block in valid["block"].unique()
            for one, other in page.pairs
            if (block, one) in points and (block, other) in points
        ]
        axes.add_collection(LineCollection(lines, colors=FAINT, linewidths=0.9, zorder=1))


def draw_throughput(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each trial's throughput by treatment; lines join the trials of a block."""
    table = table.rename(columns={"throughput_rps": "value"})
    # Failed trials are marked at 0.
    failed = (table["what"] == TRIAL) & ((table["state"] == "failed") | table["value"].isna())
    table = table.assign(
        what=table["what"].mask(failed, FAILED),
        value=table["value"].mask(failed, 0.0),
        aside=_aside(table),
    )
    within = 0.0, reach(table.loc[table["what"] == TRIAL, "value"], BEYOND)[1]
    is_typical = table["what"].isin(TYPICAL)
    typical = table[is_typical]
    several = set(typical.loc[typical["n"] > 1, "what"])
    name = "median (n < 6: geometric mean)" if len(several) > 1 else "".join(several)
    # The point of a single trial is no typical value.
    table = table.assign(what=table["what"].mask(is_typical & (table["n"] == 1), ALONE))
    label = f"{name} and its 95% interval" if several else ""
    chart = RowChart(
        TITLE,
        " ".join([SUBTITLE, *([ARROW] if (typical["high"] > within[1]).any() else [])]),
        layers=(
            Joined(),
            Points(by="treatment", how={"s": 22}, keyed=False),
            Marks((FAILED,), "x", "failed trial (not compared)", size=4),
            Intervals(TYPICAL, within=within, by="treatment", lw=2.2, size=0,
                      keyed=False),
            Intervals(TYPICAL, low="value", high="value", within=within,
                      label=label),
        ),
        panels={"": Axis(AXIS, ends=(0, None), whole=True)},
        row_in=0.62,
        said=_words_beside,
    )  # fmt: skip
    return chart.draw(table, page)


def _aside(table: pd.DataFrame) -> pd.Series[float]:
    """Return the places within a row: trials by block, the first on top, then typical values."""
    is_trial = table["what"] == TRIAL
    blocks = sorted(table.loc[is_trial, "block"].unique())
    span = np.linspace(*BAND, len(blocks)) if len(blocks) > 1 else [sum(BAND) / 2]
    by_block = table["block"].map(dict(zip(blocks, span, strict=True)))
    return by_block.astype(float).where(is_trial, TYPICAL_AT)


def _words_beside(table: pd.DataFrame) -> dict[Hashable, str]:
    typical = table[table["what"].isin([*TYPICAL, ALONE])].to_dict("records")
    return {row["treatment"]: in_words(row) for row in typical}


THROUGHPUT = View("throughput", TITLE, throughput_table, draw_throughput)
