"""The marks of a logarithmic axis suit all panels that share it."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from perflab.figures.charts.rows import log_axis


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_panels_that_share_an_axis_are_marked_for_the_widest_of_them(order) -> None:
    panels = Figure().subplots(1, 2, sharey=True)
    values = {0: [1.0, 1e5], 1: [10.0, 12.0]}
    for place in order:
        panels[place].plot([0, 1], values[place])
        log_axis(panels[place], "y")
    low, high = panels[0].get_ylim()
    marks = [mark for mark in panels[0].get_yticks() if low <= mark <= high]
    # Five decades have marks at powers of ten only; half a decade alone would have others.
    assert marks == pytest.approx([10.0**power for power in range(6)])


def test_a_panel_without_data_takes_no_marks_from_the_others() -> None:
    panels = Figure().subplots(1, 2, sharey=True)
    panels[0].plot([0, 1], [1.0, 50.0])
    for axes in panels:
        log_axis(axes, "y")
    assert len(panels[0].get_yticks()) > 3


@pytest.mark.parametrize("values", [[15.4, 16.2], [1569.9, 1570.3], [50.0, 95.0], [0.71, 1.6]])
def test_no_two_marks_of_an_axis_have_the_same_number(values) -> None:
    axes = Figure().subplots()
    axes.plot([0, 1], values)
    log_axis(axes, "y")
    low, high = axes.get_ylim()
    form = axes.yaxis.get_major_formatter()
    numbers = [form(mark, 0) for mark in axes.get_yticks() if low <= mark <= high]
    assert len(numbers) > 2
    assert len(set(numbers)) == len(numbers)
