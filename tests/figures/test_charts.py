"""Parts of charts: logarithmic axes, intervals that leave the picture, and refused trials."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from perflab.figures.charts.axes import log_axis
from perflab.figures.charts.layers import Published, draw_points
from perflab.figures.origin import Page, page_of
from perflab.figures.plots.throughput import BEYOND, draw_throughput, throughput_table
from perflab.figures.theme import Style
from perflab.figures.view import ARROW, OTHER_LOAD, SAME_LOAD, draw_interval
from tests.figures.shown import one_line
from tests.support.synthetic import write_run

STYLES = {"a": Style("#102030", "o", "a"), "b": Style("#aabbcc", "s", "b")}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_panels_that_share_an_axis_are_marked_for_the_widest_of_them(order) -> None:
    panels = Figure().subplots(1, 3, sharey=True)
    values = {0: [1.0, 1e5], 1: [10.0, 12.0]}
    for place in order:
        panels[place].plot([0, 1], values[place])
        log_axis(panels[place], "y")
    # A panel without data takes no marks from the others.
    log_axis(panels[2], "y")
    low, high = panels[0].get_ylim()
    marks = [mark for mark in panels[0].get_yticks() if low <= mark <= high]
    # Five decades have marks at powers of ten only; half a decade alone would have others.
    assert marks == pytest.approx([10.0**power for power in range(6)])


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


def arrows(axes: Axes) -> list[tuple[object, float]]:
    """Return the arrows of a panel: their markers and their places along x."""
    lines = [line for line in axes.get_lines() if line.get_gid() == "arrow"]
    return [(line.get_marker(), float(np.asarray(line.get_xdata())[0])) for line in lines]


@pytest.mark.parametrize(
    ("interval", "shown", "ends"),
    [
        ((2.0, 3.0), [2.0, 3.0], []),
        ((0.5, 3.0), [1.0, 3.0], [("<", 1.0)]),
        ((2.0, math.inf), [2.0, 4.0], [(">", 4.0)]),
        ((1e-9, 1e9), [1.0, 4.0], [("<", 1.0), (">", 4.0)]),
    ],
)
def test_an_interval_ends_in_an_arrow_where_it_leaves_the_picture(interval, shown, ends) -> None:
    axes = Figure().subplots()
    draw_interval(axes, (math.nan, math.nan), 0.0, (1.0, 4.0))
    assert not axes.get_lines(), "there is no interval"
    draw_interval(axes, interval, 0.0, (1.0, 4.0), color="black")
    assert np.asarray(axes.get_lines()[0].get_xdata()).tolist() == shown
    assert arrows(axes) == ends


@pytest.mark.parametrize("spread", [0.01, 0.5])
def test_the_throughput_of_two_blocks_has_the_axis_of_its_trials(
    tmp_path: Path, spread: float
) -> None:
    run = write_run(tmp_path, blocks=2, requests=10)
    table = throughput_table(run)
    typical = table["what"] != "trial"
    # Student's t at one degree of freedom: 12.7 standard errors.
    table.loc[typical, "low"] = table["throughput_rps"] * np.exp(-12.7 * spread)
    table.loc[typical, "high"] = table["throughput_rps"] * np.exp(12.7 * spread)
    figure = draw_throughput(table, page_of(run))
    (axes,) = figure.get_axes()
    fastest = table.loc[~typical, "throughput_rps"].max()
    assert axes.get_xlim()[1] < 1.1 * BEYOND * fastest
    assert [marker for marker, _ in arrows(axes)] == ([">", ">"] if spread > 0.1 else [])
    assert (ARROW in one_line(figure)) == (spread > 0.1)


def drawn(states: list[str], **how: Any) -> list[Any]:
    axes = Figure().subplots()
    points = pd.DataFrame({"x": 1.0, "y": 1.0, "what": "a", "state": states})
    # Points without a look are left out.
    points = pd.concat([points, points.assign(what="nobody")], ignore_index=True)
    draw_points(axes, points, "what", STYLES, **how)
    return list(axes.collections)


@pytest.mark.parametrize("how", [{}, {"zorder": 2}])
@pytest.mark.parametrize("states", [["valid", "invalid"], ["invalid", "valid"]])
def test_refused_points_are_hollow_and_lie_below_valid_ones(
    states: list[str], how: dict[str, Any]
) -> None:
    below, above = sorted(drawn(states, **how), key=lambda points: points.get_zorder())
    assert below.get_zorder() < above.get_zorder()
    assert below.get_facecolor()[0] == pytest.approx(to_rgba("white"))
    assert below.get_edgecolor()[0] == pytest.approx(to_rgba("#102030"))
    assert above.get_facecolor()[0] == pytest.approx(to_rgba("#102030"))
    assert above.get_zorder() == how.get("zorder", 3)


def test_published_values_at_another_load_are_hollow() -> None:
    layer, axes, page = Published(), Figure().subplots(), cast(Page, None)
    places = {"x": [1.0, 2.0, math.nan], "y": [0.0, 1.0, 2.0]}
    states = [SAME_LOAD, OTHER_LOAD, OTHER_LOAD]
    rows = pd.DataFrame({"what": "published", "state": states, **places})
    layer.draw(axes, rows, page)
    assert [line.get_markerfacecolor() == "white" for line in axes.get_lines()] == [False, True]
    labels = [handle.get_label() for handle in layer.key(rows, page)]
    assert labels == ["published, same load", "published; this run: other load"]
    (only,) = layer.key(rows[:1], page)
    assert only.get_label() == labels[0]
