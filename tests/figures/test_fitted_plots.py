"""The plot of a fitted law draws what was found, says what was refused, keeps its words inside."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from perflab.analysis.curves.scalability_law import scalability
from perflab.figures.plots.scalability_curve import draw_scalability
from tests.analysis.test_scalability import trials
from tests.figures.shown import all_words, cut_off

FOOTER = "run 20260102T030405Z-planted-000001 · seed 1\nbackend process"


def drawn(case: str) -> Figure:
    random = np.random.default_rng(1)
    table = trials(random, 6, kappa=0.0 if case == "none" else 0.001)
    table = table.head(0) if case == "empty" else table
    return draw_scalability(table, scalability(table), load_name="users", footer=FOOTER)


@pytest.mark.parametrize("case", ["peak", "none", "empty"])
def test_no_text_is_cut_off(case: str) -> None:
    figure = drawn(case)
    assert cut_off(figure) == []
    assert "planted" in all_words(figure)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("peak", "Throughput peaks at a load of"),
        ("none", "not within reach"),
        ("empty", "no trial"),
    ],
)
def test_the_figure_says_what_was_found(case: str, words: str) -> None:
    assert words in all_words(drawn(case))


def test_a_peak_that_was_refused_is_not_drawn() -> None:
    legend = drawn("none").legends[0]
    assert not any(text.get_text().startswith("peak with") for text in legend.get_texts())
