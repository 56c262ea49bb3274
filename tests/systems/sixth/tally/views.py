"""The views of tally: bytes taken in over a trial."""

import pandas as pd

from perflab.figures import EFFECT, View
from perflab.figures.canvas import LabFigure, finish, page_canvas
from perflab.figures.origin import Page
from perflab.recordings import Run

TITLE = "bytes taken in, over a trial"


def taken_table(run: Run) -> pd.DataFrame:
    """Return the bytes taken in over time in each treatment's first trial."""
    taken = run.table("taken").sort_values(["treatment", "block", "at_ns"])
    first = taken[taken["block"] == taken.groupby("treatment")["block"].transform("min")]
    trials = first.groupby("treatment")
    begin = trials["at_ns"].transform("min")
    total = trials["bytes"].cumsum()
    return first.assign(t_s=(first["at_ns"] - begin) / 1e9, total=total)[
        ["treatment", "t_s", "total"]
    ].reset_index(drop=True)


def draw_taken(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a line for every treatment."""
    figure = page_canvas(page, TITLE, plot_height_in=2.5)
    axes = figure.subplots()
    for name, of_treatment in table.groupby("treatment"):
        axes.plot(
            of_treatment["t_s"],
            of_treatment["total"],
            color=page.styles[str(name)].color,
            label=name,
        )
    axes.set_xlabel("time, s")
    axes.set_ylabel("taken in, bytes")
    return finish(figure)


VIEWS = (EFFECT, View("taken", TITLE, taken_table, draw_taken))
