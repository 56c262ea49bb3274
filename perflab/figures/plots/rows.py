"""Rows of treatments: the frame that horizontal plots share."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from perflab.figures.looks import Look
from perflab.figures.theme import INK
from perflab.figures.words import tick_label

LABEL_WIDTH_IN = 1.9


def height_in(looks: Mapping[str, Look], least_in: float) -> float:
    """Return how high each row must be for its label, in inches."""
    lines = max((_label(look).count("\n") + 1 for look in looks.values()), default=1)
    return max(least_in, 0.155 * lines + 0.1)


def frame(axes: Axes, looks: Mapping[str, Look]) -> dict[str, int]:
    """Give ``axes`` one labelled row per treatment, the first on top; return each one's y."""
    places = {name: row for row, name in enumerate(looks)}
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.set_yticks(list(places.values()), [_label(look) for look in looks.values()])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    return places


def _label(look: Look) -> str:
    return tick_label(look.label, LABEL_WIDTH_IN)
