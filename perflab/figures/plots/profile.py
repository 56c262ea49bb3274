"""Where the time goes, by function."""

from __future__ import annotations

import pandas as pd

from perflab.analysis.accounts.profiles import function_shares, profiled
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Bars, RowChart
from perflab.figures.origin import Page
from perflab.figures.view import ARROW, View

PROFILE_TITLE = "where the time goes, by function"
MOST_FUNCTIONS = 10
BAR_IN = 0.17
# The axis ends at this many times the largest share, to leave room for numbers.
BEYOND = 1.35


def draw_profile(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the functions that take the most time, the largest on top."""
    trials = table.groupby("treatment")["trials"].first()
    styles = {name: style for name, style in page.styles.items() if name in trials}
    longest = float(table["percent"].max())
    bars = Bars(
        {name: style.color for name, style in styles.items()},
        "{:.1f}".format,
        by="treatment",
        labels={name: f"{style.label}, n = {trials[name]}" for name, style in styles.items()},
        within=(0.0, BEYOND * longest),
    )
    chart = RowChart(
        PROFILE_TITLE,
        "Share of the profiler's looks that found a thread inside the function itself, not in one"
        " that it called; mean over valid trials with its 95% interval. The functions with the"
        f" largest shares are shown. {ARROW}",
        layers=(bars,),
        panels={"": Axis("% of the time", below=0.0, above=BEYOND)},
        row="function",
        value="percent",
        labels=lambda rows, _: {name: name for name in rows["function"].unique()},
        row_in=BAR_IN * len(styles) + 0.1,
    )
    return chart.draw(table, page)


PROFILE = View(
    "profile", PROFILE_TITLE, lambda run: function_shares(run, MOST_FUNCTIONS), draw_profile,
    suits=lambda run: bool(profiled(run)),
)  # fmt: skip
