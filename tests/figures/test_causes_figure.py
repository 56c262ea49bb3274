"""The figure of causes: a treatment that stands against several others has a panel for each."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from perflab.figures.origin import page_of
from perflab.figures.plots.causes import CAUSE_COLUMNS, draw_causes
from tests.figures.shown import one_line


@pytest.mark.promise
def test_each_pair_has_a_panel_with_its_own_points(normal) -> None:
    page = page_of(normal)
    first, second = page.styles
    third = "of the third"
    page = replace(page, styles={**page.styles, third: replace(page.styles[second], label="third")})
    pairs = (first, second, 4.0), (first, third, -2.0)
    table = pd.DataFrame(
        [
            ["entry", name, new, old, 1.0, 1.0 + change, change, change - 0.5, change + 0.5]
            for new, old, change in pairs
            for name in ("the response time", "waits for a core")
        ],
        columns=CAUSE_COLUMNS,
    )
    figure = draw_causes(table, page)
    panels = figure.axes
    for axes, (new, old, change) in zip(panels, pairs, strict=True):
        label = axes.get_xlabel().replace("\n", " ")
        for name in (new, old):
            assert page.styles[name].label.split()[0] in label
        marks = [line for line in axes.lines if line.get_marker() not in ("", "None", None)]
        assert {float(line.get_xdata()[0]) for line in marks} == {change}
    assert len({axes.get_xlim() for axes in panels}) == 1, "lengths compare"


def test_a_figure_that_cannot_show_every_pair_says_so(normal) -> None:
    page = page_of(normal)
    new, old, *_ = page.styles
    others = [f"other {number}" for number in range(4)]
    page = replace(page, styles={**page.styles, **dict.fromkeys(others, page.styles[old])})
    rows = [["entry", "the response time", new, other, 1, 2, 1, 0.5, 1.5] for other in others]
    for count, told in ((3, False), (4, True)):
        figure = draw_causes(pd.DataFrame(rows[:count], columns=CAUSE_COLUMNS), page)
        assert len(figure.axes) == 3
        assert ("The first 3 of 4 pairs; the table has all." in one_line(figure)) == told


def test_no_point_of_a_part_that_is_more_than_the_whole_leaves_the_picture(normal) -> None:
    page = page_of(normal)
    new, old, *_ = page.styles
    table = pd.DataFrame(
        [
            ["entry", name, new, old, 0.0, change, change, change - 0.1, change + 0.1]
            for name, change in (("the response time", 16.0), ("db: SELECT", 28.0))
        ],
        columns=CAUSE_COLUMNS,
    )
    (axes,) = draw_causes(table, page).axes
    assert axes.get_xlim()[1] > 28.0
