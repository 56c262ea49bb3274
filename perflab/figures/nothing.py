"""A figure or a panel that has nothing to show, and says in a sentence why."""

from __future__ import annotations

from matplotlib.axes import Axes

from perflab.figures.canvas import LabFigure, finish, page_canvas
from perflab.figures.page import Page
from perflab.figures.theme import MUTED
from perflab.figures.words import wrap

SIZE_PT, LINE_IN = 9.0, 0.15
WIDTH_IN, LEAST_IN, AROUND_IN = 5.5, 1.0, 0.1


def empty_figure(page: Page, title: str, words: str = "") -> LabFigure:
    """Return a figure that shows nothing and says why: by default what became of the trials."""
    said, room_in = words or page.nothing, WIDTH_IN
    lines_in = LINE_IN * len(wrap(said, SIZE_PT, room_in))
    figure = page_canvas(page, title, plot_height_in=max(LEAST_IN, lines_in + AROUND_IN))
    say(figure.subplots(), said, room_in)
    return finish(figure)


def say(axes: Axes, words: str, width_in: float) -> None:
    """Write a sentence into the middle of a panel, broken to ``width_in`` inches; no axes."""
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, "\n".join(wrap(words, SIZE_PT, width_in)), transform=axes.transAxes,
        ha="center", va="center", size=SIZE_PT, color=MUTED,
    )  # fmt: skip
