"""Where a profiled service spends its time: a bar per function and treatment."""

from __future__ import annotations

import pandas as pd

from perflab.analysis.trials.profiles import function_shares, profiled
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Bars, RowChart
from perflab.figures.intervals import ARROW
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run

TITLE = "where the time goes, by function"
SHOWN = 10
BAR_IN = 0.17
# The axis ends at so many times the largest share: the rest is for numbers.
BEYOND = 1.35


def draw_profile(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the functions that take most time, the largest on top."""
    trials = table.groupby("treatment")["trials"].first()
    looks = {name: look for name, look in page.looks.items() if name in trials}
    longest = float(table["percent"].max())
    bars = Bars(
        {name: look.color for name, look in looks.items()},
        "{:.1f}".format,
        by="treatment",
        labels={name: f"{look.label}, n = {trials[name]}" for name, look in looks.items()},
        within=(0.0, BEYOND * longest),
    )
    chart = RowChart(
        TITLE,
        "Share of the profiler's looks that found a thread inside the function itself, not in one"
        " that it called; mean over valid trials with its 95% interval. The functions with the"
        f" largest shares are shown. {ARROW}",
        layers=(bars,),
        panels={"": Axis("% of the time", below=0.0, above=BEYOND)},
        row="function",
        value="percent",
        labels=lambda own, _: {name: name for name in own["function"].unique()},
        row_in=BAR_IN * len(looks) + 0.1,
    )
    return chart.draw(table, page)


def profile_table(run: Run) -> pd.DataFrame:
    """Return the functions that take most time, in percent of it, by treatment (long form)."""
    return function_shares(run, SHOWN)


PROFILE = View("profile", TITLE, profile_table, draw_profile, suits=lambda run: bool(profiled(run)))
