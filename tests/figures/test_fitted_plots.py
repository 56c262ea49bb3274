"""Plots of fits draw what was found, say what was refused, and keep their words inside."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from perflab.analysis.knee import knee
from perflab.analysis.scalability import scalability
from perflab.figures.plots.knee_curve import knee_curve
from perflab.figures.plots.scalability_curve import scalability_curve
from tests.analysis.test_knee import bent, loads, windows_of
from tests.analysis.test_scalability import trials
from tests.figures.shown import all_words, cut_off

FOOTER = "run 20260102T030405Z-planted-000001 · seed 1\nbackend process"


def drawn(case: str) -> Figure:
    random = np.random.default_rng(1)
    if case.startswith("knee"):
        cpu = loads(random, "one load per trial")
        table = windows_of(random, cpu, 2 * cpu if case == "knee, none" else bent(cpu))
        table = table.assign(treatment=table["trial_id"].str[-1])
        table = table.head(0) if case == "knee, empty" else table
        return knee_curve(table, knee(table, "cpu"), "cpu", footer=FOOTER)
    table = trials(random, 6, kappa=0.0 if case == "peak, none" else 0.001)
    table = table.head(0) if case == "peak, empty" else table
    return scalability_curve(table, scalability(table), load_name="users", footer=FOOTER)


CASES = ["knee", "knee, none", "knee, empty", "peak", "peak, none", "peak, empty"]


@pytest.mark.parametrize("case", CASES)
def test_no_text_is_cut_off(case: str) -> None:
    figure = drawn(case)
    assert cut_off(figure) == []
    assert "planted" in all_words(figure)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("knee", "% interval"),
        ("knee, none", "No knee: no upward bend"),
        ("knee, empty", "no window"),
        ("peak", "Throughput peaks at a load of"),
        ("peak, none", "not within reach"),
        ("peak, empty", "no trial"),
    ],
)
def test_the_figure_says_what_was_found(case: str, words: str) -> None:
    assert words in all_words(drawn(case))


@pytest.mark.parametrize(("case", "label"), [("knee, none", "knee"), ("peak, none", "peak with")])
def test_what_was_refused_is_not_drawn(case: str, label: str) -> None:
    legend = drawn(case).legends[0]
    assert not any(text.get_text().startswith(label) for text in legend.get_texts())
