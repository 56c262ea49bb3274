"""One row of the effect figure: a claim in words, its effect in every block, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from perflab.analysis.effect_words import interval_words, with_unit
from perflab.figures import theme
from perflab.figures.canvas import MARGIN_IN, WIDTH_IN, Line, lines_of
from perflab.figures.theme import FAINT, INK, MUTED, PALETTE, text_width_in
from perflab.figures.view import draw_interval
from perflab.statistics.in_words import at_least, at_most, counted

LEFT_IN, RIGHT_IN = 2.45, 1.72
SIZE_PT, SMALL_PT = 8.0, 7.0
LINE_IN, SMALL_LINE_IN = 0.145, 0.125
PAD_IN = 0.09
LEAST_IN = 0.62
# Heights in a row's picture: the first and the last block, the estimate, the published value.
BLOCKS, ESTIMATE, PUBLISHED_AT = (0.08, 0.46), 0.66, 0.88
POINT, MEASURED, CLAIMED = PALETTE[7], INK, theme.PUBLISHED_COLOR
GAP_IN = 0.09
SHARE, LEVEL = "share", "level"
# The axis shows at least this ratio on both sides of 1.
LEAST = 1.1
# An interval may reach this share of the other values' range beyond them; few blocks span decades.
BEYOND = 0.5
PADDING = 0.06
# Between the three columns of a page.
BETWEEN_IN = 0.16

# Where a row's picture, between the claim and the result, begins, and its width.
PLOT_LEFT_IN = MARGIN_IN + LEFT_IN + BETWEEN_IN
PLOT_IN = WIDTH_IN - LEFT_IN - RIGHT_IN - 4 * BETWEEN_IN


@dataclass(frozen=True)
class Claim:
    """A row of the table: see :func:`perflab.figures.plots.effects.effect_table`.

    Without an effect ``of_blocks`` is empty. Missing numbers are NaN. A claim's ``limit`` stands in
    the place of no effect. ``shared_starts`` says what n counts where blocks share a start.
    """

    claim: str
    name: str
    scale: str
    quantity: str
    unit: str
    published: str
    published_value: float
    measured: float
    low: float
    high: float
    of_blocks: tuple[float, ...]
    left_out: int
    verdict: str
    reason: str
    absent: str
    limit: float = math.nan
    shared_starts: str = ""


def bound_of(claim: Claim) -> float:
    """Return the bound of an effect of which only a bound is known; NaN for others."""
    if not claim.of_blocks or math.isfinite(claim.measured):
        return math.nan
    return claim.high if math.isfinite(claim.high) else claim.low


def claim_of(record: Mapping[Hashable, Any]) -> Claim:
    """Return the claim in a row of the table as it was read from a file."""
    of_blocks = tuple(float(value) for value in record["of_blocks"].split())
    return Claim(**{**{str(key): value for key, value in record.items()}, "of_blocks": of_blocks})


@dataclass(frozen=True)
class Row:
    """A claim with its words, broken into lines."""

    claim: Claim
    question: tuple[Line, ...]
    result: tuple[Line, ...]

    @property
    def height_in(self) -> float:
        """Return the height that the row needs for its words and its picture."""
        picture = LEAST_IN if self.claim.of_blocks else 0.0
        return max(picture, _height_in(self.question), _height_in(self.result)) + 2 * PAD_IN


def row(claim: Claim) -> Row:
    """Return a claim with the lines of words at the left and at the right of its picture.

    Without an effect in any block there is no picture, and the words at the right have its room.
    """
    right_in = RIGHT_IN if claim.of_blocks else WIDTH_IN - MARGIN_IN - PLOT_LEFT_IN
    left = [
        *lines_of(claim.claim, LEFT_IN, SIZE_PT, INK),
        *lines_of(claim.name, LEFT_IN, SMALL_PT, MUTED),
    ]
    right = lines_of(claim.verdict, right_in, SIZE_PT, INK, "bold")
    if claim.of_blocks:
        right += [
            *lines_of(measured(claim), right_in, SIZE_PT, INK),
            *lines_of(_blocks(claim), right_in, SMALL_PT, MUTED),
        ]
    for words in dict.fromkeys(filter(None, (claim.reason, claim.absent))):
        right += lines_of(words, right_in, SMALL_PT, MUTED)
    return Row(claim, tuple(left), tuple(right))


def measured(claim: Claim) -> str:
    """Return the estimate with its interval, or the bound, as tables have it."""
    bound = bound_of(claim)
    if math.isfinite(bound):
        told = at_most(bound) if math.isfinite(claim.high) else at_least(bound)
        return with_unit(told, claim.unit)
    return interval_words(claim.measured, claim.low, claim.high, claim.scale, claim.unit)


def _blocks(claim: Claim) -> str:
    left_out = f", {counted(claim.left_out, 'block')} left out" if claim.left_out else ""
    n = claim.shared_starts or counted(len(claim.of_blocks), "block")
    return f"n = {n}{left_out}"


def _height_in(lines: tuple[Line, ...]) -> float:
    return sum(_line_in(size) for _, size, _, _ in lines)


def _line_in(size: float) -> float:
    return LINE_IN if size == SIZE_PT else SMALL_LINE_IN


def write(axes: Axes, lines: tuple[Line, ...], x_in: float, top_in: float) -> None:
    """Write lines at ``x_in`` inches right of the panel's left end, ``top_in`` below its top.

    The panel's y axis is in inches, downwards.
    """
    y = top_in + PAD_IN
    for text, size, color, weight in lines:
        axes.text(
            x_in / PLOT_IN, y, text, size=size, color=color, weight=weight, va="top",
            transform=axes.get_yaxis_transform(),
        )  # fmt: skip
        y += _line_in(size)


def draw(axes: Axes, claim: Claim, top_in: float, height_in: float) -> None:
    """Draw the blocks, the estimate with its interval and the published value of a claim."""

    def at(share: float) -> float:
        return top_in + PAD_IN + share * (height_in - 2 * PAD_IN)

    count = len(claim.of_blocks)
    places = np.linspace(*BLOCKS, count) if count > 1 else np.array([sum(BLOCKS) / 2])
    if math.isfinite(claim.limit):
        axes.plot([claim.limit] * 2, [top_in, top_in + height_in], color=MUTED, lw=1.0, ls="--",
                  zorder=1, gid="limit")  # fmt: skip
    axes.plot(claim.of_blocks, [at(place) for place in places], ls="", marker=_mark(claim), ms=4,
              mfc=POINT, mec=INK, mew=0.4, zorder=3, gid="blocks")  # fmt: skip
    is_bound = math.isfinite(bound_of(claim))
    if is_bound or math.isfinite(claim.low):
        draw_interval(axes, (claim.low, claim.high), at(ESTIMATE), axes.get_xlim(), arrow_pt=5.0,
                      color=MEASURED, lw=2.0, solid_capstyle="butt", zorder=3,
                      gid="bound" if is_bound else "interval")  # fmt: skip
    if math.isfinite(claim.low) and not is_bound:
        axes.plot([claim.measured], [at(ESTIMATE)], marker="s", ms=5, color=MEASURED, zorder=4,
                  gid="estimate")  # fmt: skip
    if claim.published:
        _draw_published(axes, claim, at(PUBLISHED_AT))


def _mark(claim: Claim) -> str:
    """Return the mark of a block; that of a bound points to where the effect may lie."""
    if math.isnan(bound_of(claim)):
        return "o"
    return "<" if math.isfinite(claim.high) else ">"


def _draw_published(axes: Axes, claim: Claim, y: float) -> None:
    """Mark the published value and write it; a direction alone is only written, at no effect."""
    value, words = claim.published_value, f"published: {claim.published}"
    if math.isfinite(value):
        axes.plot([value], [y], marker="D", ms=5, mfc="white", mec=CLAIMED, mew=1.3, zorder=4,
                  gid="published")  # fmt: skip
        place, rightwards = _share(axes, value), _share(axes, value) < 0.5
    else:
        rightwards = "greater" in claim.published or "more than" in claim.published
        words = f"{words} \N{RIGHTWARDS ARROW}" if rightwards else f"\N{LEFTWARDS ARROW} {words}"
        nothing = 1.0 if claim.scale == "ratio" else 0.0
        place = _share(axes, claim.limit if math.isfinite(claim.limit) else nothing)
    length, gap = text_width_in(words, SMALL_PT) / PLOT_IN, GAP_IN / PLOT_IN
    left = place + gap if rightwards else place - gap - length
    axes.text(min(max(left, 0.0), 1.0 - length), y, words, size=SMALL_PT, color=INK, va="center",
              transform=axes.get_yaxis_transform(), zorder=3.5,
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # fmt: skip


def _share(axes: Axes, value: float) -> float:
    """Return the place of a value in its panel, from 0 (left) to 1 (right)."""
    share = axes.transAxes.inverted().transform(axes.transData.transform((value, 0.0)))[0]
    return float(share)


def rule(axes: Axes, left_in: float, right_in: float, y_in: float) -> None:
    """Draw a faint line between two rows, in inches from the panel's left end and top."""
    axes.plot([left_in / PLOT_IN, right_in / PLOT_IN], [y_in, y_in], color=FAINT, lw=0.6,
              transform=axes.get_yaxis_transform(), clip_on=False, zorder=0)  # fmt: skip


def limits(values: Iterable[float], ends: Iterable[float], least: float) -> tuple[float, float]:
    """Return the ends of an axis that shows all ``values``, and interval ``ends`` near to them.

    All are on the scale of the axis: the logarithms of ratios. ``least`` is shown on both sides
    of 0. Where all values are alike, the interval is shown whole.
    """
    inside = [value for value in values if math.isfinite(value)]
    low, high = min([-least, *inside]), max([least, *inside])
    reach = BEYOND * (high - low) or math.inf
    near = [min(max(end, low - reach), high + reach) for end in ends if math.isfinite(end)]
    low, high = min([low, *near]), max([high, *near])
    margin = PADDING * (high - low)
    return low - margin, high + margin
