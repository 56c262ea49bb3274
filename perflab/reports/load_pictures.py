"""The pictures of one load's page, as SVG that takes its colours from the page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from perflab.figures.canvas import only_grid
from perflab.figures.theme import FAINT, INK, MUTED, applied

# Colours that only stand for those of the page (its custom properties), light and dark.
FIRST, SECOND, THIRD, FAILED = "#0072b1", "#d55e01", "#009e74", "#cc0001"
COLORS = {
    INK: "--ink", MUTED: "--muted", FAINT: "--faint",
    FIRST: "--first", SECOND: "--second", THIRD: "--third", FAILED: "--failed",
}  # fmt: skip
DASHES: Sequence[str | tuple[int, tuple[int, ...]]] = ("solid", (0, (5, 2)), (0, (1, 1)))
WIDE_IN, NARROW_IN, HEIGHT_IN = 8.2, 3.9, 2.7


def response_times(table: pd.DataFrame, width_in: float) -> Figure:
    """Draw percentiles of response time over the load; a line ends where they are unsupported."""
    figure, axes = _blank(width_in)
    for name, color, dashes in zip(
        ("p50", "p95", "p99"), (FIRST, SECOND, THIRD), DASHES, strict=True
    ):
        if table[name].notna().any():
            axes.plot(
                _middle(table), table[name], color=color, linestyle=dashes, marker=".",
                markersize=4, linewidth=1.4, label=name,
            )  # fmt: skip
    axes.set_ylim(bottom=0)
    _finished(axes, "s since the measurement's begin", "response time (ms)")
    return figure


def answers_per_second(table: pd.DataFrame, width_in: float) -> Figure:
    """Draw successes and failures per second over the load."""
    figure, axes = _blank(width_in)
    edges = [*table["at_s"], table["until_s"].iloc[-1]]
    axes.stairs(table["successes_per_s"], edges, color=FIRST, linewidth=1.4, label="successes/s")
    if table["failures_per_s"].any():
        axes.stairs(
            table["failures_per_s"], edges, color=FAILED, linewidth=1.4, linestyle=(0, (5, 2)),
            label="failures/s",
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    _finished(axes, "s since the measurement's begin", "per second")
    return figure


def response_histogram(bins: pd.DataFrame, width_in: float) -> Figure:
    """Draw how many successes took how long, on a logarithmic scale of time."""
    figure, axes = _blank(width_in)
    edges = np.array([*bins["from_ms"], bins["to_ms"].iloc[-1]])
    axes.stairs(bins["count"], edges, fill=True, color=FIRST)
    if edges[-1] > edges[0]:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10, (1, 2, 5), numticks=8))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    _finished(axes, "response time (ms)", "successes", key=False)
    return figure


def as_svg(figure: Figure, prefix: str) -> str:
    """Return a figure as an SVG element for a page; ``prefix`` keeps its ids apart."""
    target = io.StringIO()
    with applied(**{"svg.fonttype": "none", "svg.hashsalt": prefix}):
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", text)
    for color, name in COLORS.items():
        text = re.sub(re.escape(color), f"var({name})", text, flags=re.IGNORECASE)
    return re.sub(
        r'(<svg[^>]*?) width="[^"]*"',
        r"\1",
        re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1),
        count=1,
    )


def _blank(width_in: float) -> tuple[Figure, Axes]:
    with applied():
        figure = Figure(figsize=(width_in, HEIGHT_IN), layout="constrained")
        return figure, figure.add_subplot()


def _middle(table: pd.DataFrame) -> pd.Series[float]:
    return (table["at_s"] + table["until_s"]) / 2


def _finished(axes: Axes, x: str, y: str, key: bool = True) -> None:
    only_grid(axes, "y")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if key and axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.1)
