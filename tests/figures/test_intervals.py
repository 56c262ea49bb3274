"""An interval of few trials leaves the picture in an arrow; the axis suits the trials."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from perflab.figures.origin import page_of
from perflab.figures.plots.throughput import BEYOND, draw_throughput, throughput_table
from perflab.figures.view import ARROW, draw_interval, reach
from tests.figures.shown import all_words
from tests.support.synthetic import write_run


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
def test_an_interval_ends_in_an_arrow_where_it_leaves_the_picture(
    interval: tuple[float, float], shown: list[float], ends: list[tuple[str, float]]
) -> None:
    axes = Figure().subplots()
    draw_interval(axes, interval, 0.0, (1.0, 4.0), color="black")
    assert np.asarray(axes.get_lines()[0].get_xdata()).tolist() == shown
    assert arrows(axes) == ends


def test_upright_intervals_end_in_upright_arrows() -> None:
    axes = Figure().subplots()
    draw_interval(axes, (0.5, 9.0), 7.0, (1.0, 4.0), along="y", color="black")
    assert np.asarray(axes.get_lines()[0].get_ydata()).tolist() == [1.0, 4.0]
    assert arrows(axes) == [("v", 7.0), ("^", 7.0)]


def test_where_there_is_no_interval_nothing_is_drawn() -> None:
    axes = Figure().subplots()
    draw_interval(axes, (math.nan, math.nan), 0.0, (1.0, 4.0))
    assert not axes.get_lines()


def test_the_range_of_intervals_depends_on_the_measured_values() -> None:
    assert reach([10.0, math.nan, 40.0], 2.0) == (5.0, 80.0)
    assert reach([math.nan], 2.0) == (-math.inf, math.inf)


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
    pointed = [marker for marker, _ in arrows(axes)]
    assert pointed == ([">", ">"] if spread > 0.1 else [])
    assert (ARROW in " ".join(all_words(figure).split())) == (spread > 0.1)
