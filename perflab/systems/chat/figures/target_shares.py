"""The study's three targets, configuration by configuration: k of n trials, with its interval."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Published, RowChart, Texts
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots.published_marks import OTHER_LOAD, PUBLISHED, SAME_LOAD
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.targets import SAME, targets_met
from perflab.systems.chat.figures.ladder import has_rungs

TITLE = "the three targets, met in k of n trials"
MEASURED = "measured"
LOOKS = {MEASURED: Look(PALETTE[0], "o", MEASURED)}
SHARES = {0.0: "0", 0.5: "50%", 1.0: "100%"}


def targets_table(run: Run) -> pd.DataFrame:
    """Return :func:`targets_met` of the treatments that have trials."""
    table = targets_met(run)
    return table[table["trials"] > 0]


def draw_targets(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel for each target and a row for each treatment."""
    kinds = " and ".join(sorted(set(table["of"])))
    limits = table.groupby("percentile")["target_ms"].first().to_dict()
    chart = RowChart(
        TITLE,
        f"Share of all trials of a rung whose percentile of {kinds} is within the target, with its"
        " exact 95% interval; a trial that was refused or has too few of them is not within it."
        " Pings stand for a rung at the published load, deliveries for any other. Published: 100%"
        " (met) or 0.",
        layers=(
            Intervals((MEASURED,), at=0.22, by="what", looks=LOOKS, within=(0.0, 1.0), size=5),
            Published(at=-0.24),
            Texts((MEASURED,), at=-0.02, muted=False),
        ),
        panels={
            str(share): Axis(f"{share} within {limit:,.0f} ms", ends=(-0.06, 1.06), ticks=SHARES)
            for share, limit in limits.items()
        },
        panel="percentile",
    )
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for what was measured, and one for what was published, of each target."""
    measured = table.assign(what=MEASURED, state="", value=table["met"] / table["trials"])
    measured["words"] = measured["met"].map("{:g} of ".format) + measured["trials"].map(
        "{:g}".format
    )
    too_few = table["unknown"] == table["trials"]
    measured.loc[too_few, ["value", "low", "high"]] = np.nan
    measured.loc[too_few, "words"] = "n too small"
    known = table[table["published_ms"].notna()]
    published = known.assign(
        what=PUBLISHED,
        state=np.where(known["load"] == SAME, SAME_LOAD, OTHER_LOAD),
        value=(known["published_ms"] <= known["target_ms"]).astype(float),
    )
    return pd.concat([measured, published], ignore_index=True)


TARGETS_MET = View("targets_met", TITLE, targets_table, draw_targets, suits=has_rungs)
