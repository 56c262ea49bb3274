"""One row of the effect figure: a claim in words, what every block says of it, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from perflab.analysis.evaluation import Finding
from perflab.analysis.findings import published_text
from perflab.analysis.verdict import Outcome
from perflab.figures.looks import PALETTE
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.words import text_width_in, wrap
from perflab.numerals import number

LEFT_IN = 2.45
SIZE_PT, SMALL_PT = 8.0, 7.0
LINE_IN, SMALL_LINE_IN = 0.145, 0.125
PAD_IN = 0.09
LEAST_IN = 0.62
# Heights within a row's picture: blocks from the first to the last, estimate, published value.
BLOCKS, ESTIMATE, PUBLISHED = (0.08, 0.46), 0.66, 0.88
POINT, MEASURED, CLAIMED = PALETTE[5], INK, PALETTE[1]
GAP_IN = 0.09

Line = tuple[str, float, str, str]


@dataclass(frozen=True)
class Row:
    """A finding with its words, broken into lines: (text, size in points, colour, weight)."""

    finding: Finding
    claim: tuple[Line, ...]
    result: tuple[Line, ...]

    @property
    def height_in(self) -> float:
        """Return how high the row must be for its words, and its picture if it has one."""
        picture = LEAST_IN if self.finding.effect is not None else 0.0
        return max(picture, _height_in(self.claim), _height_in(self.result)) + 2 * PAD_IN


def row(finding: Finding, right_in: float) -> Row:
    """Return a finding with the words beside its picture, the right ones ``right_in`` wide."""
    contrast = finding.contrast
    claim = [
        *_lines(contrast.claim, LEFT_IN, SIZE_PT, INK),
        *_lines(contrast.name, LEFT_IN, SMALL_PT, MUTED),
    ]
    result = _lines(str(finding.verdict), right_in, SIZE_PT, INK, "bold")
    if finding.effect is not None:
        result += [
            *_lines(_measured(finding), right_in, SIZE_PT, INK),
            *_lines(_blocks(finding), right_in, SMALL_PT, MUTED),
        ]
    if finding.verdict.outcome is not Outcome.UNPUBLISHED:
        result += _lines(finding.verdict.reason, right_in, SMALL_PT, MUTED)
    return Row(finding, tuple(claim), tuple(result))


def _lines(
    text: str, width_in: float, size: float, color: str, weight: str = "normal"
) -> list[Line]:
    return [(line, size, color, weight) for line in wrap(text, size, width_in, weight)]


def _measured(finding: Finding) -> str:
    effect = finding.effect
    assert effect is not None
    if not math.isfinite(effect.low):
        return f"{number(effect.estimate)}, n too small for an interval"
    return f"{number(effect.estimate)} [{number(effect.low)}, {number(effect.high)}]"


def _blocks(finding: Finding) -> str:
    n = len(finding.blocks)
    left_out = f", {_counted(finding.left_out)} left out" if finding.left_out else ""
    return f"n = {_counted(n)}{left_out}"


def _counted(blocks: int) -> str:
    return f"{blocks} block{'s' if blocks != 1 else ''}"


def _height_in(lines: tuple[Line, ...]) -> float:
    return sum(_line_in(size) for _, size, _, _ in lines)


def _line_in(size: float) -> float:
    return LINE_IN if size == SIZE_PT else SMALL_LINE_IN


def write(axes: Axes, lines: tuple[Line, ...], x_in: float, top_in: float) -> None:
    """Write lines at ``x_in`` inches right of the panel's left end, ``top_in`` below its top.

    The panel's y axis is in inches, downwards.
    """
    width_in = _width_in(axes)
    y = top_in + PAD_IN
    for text, size, color, weight in lines:
        axes.text(
            x_in / width_in, y, text, size=size, color=color, weight=weight, va="top",
            transform=axes.get_yaxis_transform(),
        )  # fmt: skip
        y += _line_in(size)


def draw(axes: Axes, finding: Finding, top_in: float, height_in: float) -> None:
    """Draw the blocks, the estimate with its interval and the published value of a finding."""
    effect = finding.effect
    assert effect is not None

    def at(share: float) -> float:
        return top_in + PAD_IN + share * (height_in - 2 * PAD_IN)

    ratio = finding.contrast.scale == "ratio"
    values = np.exp(effect.by_block) if ratio else np.asarray(effect.by_block)
    places = np.linspace(*BLOCKS, len(values)) if len(values) > 1 else np.array([sum(BLOCKS) / 2])
    axes.plot(values, [at(place) for place in places], ls="", marker="o", ms=4, mfc=POINT,
              mec=INK, mew=0.4, zorder=3, gid="blocks")  # fmt: skip
    if math.isfinite(effect.low):
        _draw_estimate(axes, effect.low, effect.estimate, effect.high, at(ESTIMATE))
    if published_text(finding.contrast):
        _draw_published(axes, finding, at(PUBLISHED))


def _draw_estimate(axes: Axes, low: float, middle: float, high: float, y: float) -> None:
    axes.plot([low, high], [y, y], color=MEASURED, lw=2.0, solid_capstyle="butt", zorder=3,
              gid="interval")  # fmt: skip
    axes.plot([middle], [y], marker="s", ms=5, color=MEASURED, zorder=4, gid="estimate")
    first, last = axes.get_xlim()
    for end, outside, marker in ((first, low < first, "<"), (last, high > last, ">")):
        if outside:
            axes.plot([end], [y], marker=marker, ms=5, color=MEASURED, clip_on=False, zorder=4)


def published_value(finding: Finding) -> float | None:
    """Return where the published value lies; None where only a direction is claimed."""
    contrast = finding.contrast
    if contrast.scale == "difference":
        return contrast.published_difference
    if contrast.published_ratio is None and contrast.published_direction == "none":
        return 1.0
    return contrast.published_ratio


def _draw_published(axes: Axes, finding: Finding, y: float) -> None:
    """Mark the published value and say it; of a direction alone only say it, where it begins."""
    value = published_value(finding)
    words = f"published: {published_text(finding.contrast)}"
    if value is not None:
        axes.plot([value], [y], marker="D", ms=5, mfc="white", mec=CLAIMED, mew=1.3, zorder=4,
                  gid="published")  # fmt: skip
        place, rightwards = _share(axes, value), _share(axes, value) < 0.5
    else:
        rightwards = finding.contrast.published_direction == "greater"
        words = f"{words} \N{RIGHTWARDS ARROW}" if rightwards else f"\N{LEFTWARDS ARROW} {words}"
        place = _share(axes, 1.0 if finding.contrast.scale == "ratio" else 0.0)
    width_in = _width_in(axes)
    length, gap = text_width_in(words, SMALL_PT) / width_in, GAP_IN / width_in
    left = place + gap if rightwards else place - gap - length
    axes.text(min(max(left, 0.0), 1.0 - length), y, words, size=SMALL_PT, color=INK, va="center",
              transform=axes.get_yaxis_transform(), zorder=3.5,
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # fmt: skip


def _width_in(axes: Axes) -> float:
    """Return how wide a panel is, in inches."""
    return float(axes.bbox.width / axes.figure.dpi)


def _share(axes: Axes, value: float) -> float:
    """Return how far from left to right a value lies in its panel, from 0 to 1."""
    share = axes.transAxes.inverted().transform(axes.transData.transform((value, 0.0)))[0]
    return float(share)


def rule(axes: Axes, left_in: float, right_in: float, y_in: float) -> None:
    """Draw a faint line between two rows, in inches from the panel's left end and top."""
    width_in = _width_in(axes)
    axes.plot([left_in / width_in, right_in / width_in], [y_in, y_in], color=FAINT, lw=0.6,
              transform=axes.get_yaxis_transform(), clip_on=False, zorder=0)  # fmt: skip
