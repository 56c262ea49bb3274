"""A view: a tidy table of a run, and how a picture is drawn from that table alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from perflab.analysis.treatments.joint import JointClaim
from perflab.errors import RowsMissing
from perflab.figures.canvas import LabFigure
from perflab.figures.nothing import empty_figure
from perflab.figures.page import Page, page_of
from perflab.figures.tables import reread
from perflab.figures.theme import applied
from perflab.recordings import Run


def every_run(_: Run) -> bool:
    """Return True: most views suit any run of their system."""
    return True


def nothing_to_show(page: Page) -> str:
    """Return why a run has nothing to draw: what became of its trials."""
    return page.nothing


@dataclass(frozen=True)
class Judging:
    """A rule of a system's own for published claims, by their names; ``of`` applies it to a run."""

    claims: tuple[str, ...]
    of: Callable[[Run], Mapping[str, JointClaim]]


@dataclass(frozen=True)
class View:
    """One kind of picture; its files have its ``name``.

    ``table`` gives everything that is seen but the words around it, as a tidy table of texts and
    numbers (:mod:`perflab.figures.tables`), without rows where the run holds nothing of it; and
    ``draw`` draws a table that has rows, without its run. ``suits`` says whether a run is of the
    kind that this is a view of, whatever was measured, and ``empty`` why nothing may be shown.
    ``judging`` is how it judges claims, where it does.
    """

    name: str
    title: str
    table: Callable[[Run], pd.DataFrame]
    draw: Callable[[pd.DataFrame, Page], LabFigure]
    suits: Callable[[Run], bool] = every_run
    empty: Callable[[Page], str] = nothing_to_show
    judging: Judging | None = None

    def shown(self, run: Run) -> pd.DataFrame:
        """Return the table of a run; without rows where the recording lacks what it is made of."""
        try:
            return self.table(run)
        except RowsMissing:
            return pd.DataFrame()


def draw_table(view: View, table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a table as it was read from its file; one without rows as a sentence that says why."""
    with applied():
        if table.empty:
            return empty_figure(page, view.title, view.empty(page))
        return view.draw(table, page)


def draw_view(view: View, run: Run) -> LabFigure:
    """Draw a run just as it would be saved: with the digits that the file has.

    Of a run of another kind the figure says that there is nothing to show.
    """
    table = reread(view.shown(run)) if view.suits(run) else pd.DataFrame()
    return draw_table(view, table, page_of(run))
