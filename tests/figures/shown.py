"""The words that a reader sees in a figure, and whether they are cut off or overlap."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text

from perflab.figures import View, draw_view
from perflab.figures.canvas import LabFigure
from perflab.recordings import Run
from perflab.reports.figures import views_of


@cache
def picture(view: View, run: Run) -> LabFigure:
    """Return the figure of a view of a run, drawn once for all tests."""
    figure = draw_view(view, run)
    assert isinstance(figure, LabFigure)
    return figure


@cache
def pictures(run: Run) -> dict[str, LabFigure]:
    """Return the figures of a run by name."""
    return {view.name: picture(view, run) for view in views_of(run)}


@cache
def shown_texts(figure: Figure) -> list[Text]:
    """Return the texts of a finished figure that are drawn (axes keep ticks beyond limits)."""
    figure.draw_without_rendering()
    unseen = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not axes.axison or not low <= tick.get_loc() <= high:
                    unseen |= {tick.label1, tick.label2}
    texts = figure.findobj(Text)
    return [t for t in texts if t not in unseen and t.get_visible() and t.get_text().strip()]


def all_words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text)).replace("\u00a0", " ")


def one_line(figure: Figure) -> str:
    """Return all words in one line."""
    return " ".join(all_words(figure).split())


def cut_off(figure: Figure) -> list[str]:
    """Return the texts that the canvas cuts off."""
    width, height = figure.bbox.width, figure.bbox.height
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown_texts(figure)]
    return [
        words
        for words, box in boxes
        if box.x0 < -0.5 or box.y0 < -0.5 or box.x1 > width + 0.5 or box.y1 > height + 0.5
    ]


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown_texts(figure)]
    return [
        (a, b)
        for (a, one), (b, two) in combinations(boxes, 2)
        if one.x0 + 1 < two.x1 - 1
        and two.x0 + 1 < one.x1 - 1
        and one.y0 + 1 < two.y1 - 1
        and two.y0 + 1 < one.y1 - 1
    ]


def check_texts(run: Run, names: Iterable[str]) -> None:
    """Check that no text of figures is cut off or overlaps another, and each names the run."""
    for name in names:
        figure = pictures(run)[name]
        assert (cut_off(figure), overlapping(figure)) == ([], []), name
        assert run.run_id in all_words(figure), name
