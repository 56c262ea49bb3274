"""A figure that has nothing to show, and says in a sentence why."""

from __future__ import annotations

from perflab.figures.canvas import LabFigure, finish, page_canvas
from perflab.figures.page import Page
from perflab.figures.theme import MUTED
from perflab.figures.words import wrap

SIZE_PT, LINE_IN = 9.0, 0.15
WIDTH_IN, LEAST_IN, AROUND_IN = 5.5, 1.0, 0.1


def empty_figure(page: Page, title: str, words: str = "") -> LabFigure:
    """Return a figure that shows nothing and says why: by default what became of the trials."""
    lines = wrap(words or page.nothing, SIZE_PT, WIDTH_IN)
    figure = page_canvas(page, title, max(LEAST_IN, LINE_IN * len(lines) + AROUND_IN))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, "\n".join(lines), transform=axes.transAxes, ha="center", va="center",
        size=SIZE_PT, color=MUTED,
    )  # fmt: skip
    return finish(figure)
