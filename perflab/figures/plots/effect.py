"""What every claim of a run comes to: paired blocks, estimate, published value and verdict."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import findings_table
from perflab.analysis.verdict import Outcome
from perflab.figures.canvas import MARGIN_IN, WIDTH_IN, LabFigure, canvas_of, only_grid
from perflab.figures.nothing import empty_figure
from perflab.figures.plots import effect_rows
from perflab.figures.plots.effect_rows import LEFT_IN, PAD_IN, Row, row
from perflab.figures.plots.ratios import LEAST, limits, ratio_axis
from perflab.figures.theme import MUTED, styled
from perflab.recordings import Run

NO_BREAK = "\N{NO-BREAK SPACE}"
AXIS_IN = 0.5
GAP_IN = 0.16
RIGHT_IN = 1.72
PLOT_IN = WIDTH_IN - LEFT_IN - RIGHT_IN - 4 * GAP_IN
PLOT_LEFT_IN = MARGIN_IN + LEFT_IN + GAP_IN
# A panel holds rows that share an axis: what is measured, in which unit, and on which scale.
Kind = tuple[str, str, str]
WITHOUT: Kind = ("", "", "")


def table(run: Run) -> pd.DataFrame:
    """Return the findings as their table has them, and the effect in every block compared."""
    findings = evaluate(run)
    of_blocks: dict[str, Any] = {
        "scale": [finding.contrast.scale for finding in findings],
        "left out": [finding.left_out for finding in findings],
        "blocks": [" ".join(map(str, finding.blocks)) for finding in findings],
        "effects of blocks": [
            " ".join(f"{value:.6g}" for value in _of_blocks(finding)) for finding in findings
        ],
    }
    return findings_table(findings).assign(**of_blocks)


def _of_blocks(finding: Finding) -> list[float]:
    if finding.effect is None:
        return []
    values = finding.effect.by_block
    return [math.exp(each) for each in values] if finding.contrast.scale == "ratio" else [*values]


@styled
def effect(run: Run) -> Figure:
    """Draw a row per claim: its blocks, estimate, interval, published value and verdict."""
    findings = evaluate(run)
    if not findings:
        return empty_figure(run, "no effect to show", _no_claim(run))
    panels = _panels(findings)
    figure = canvas_of(
        run,
        _title(findings),
        plot_height_in=sum(_height_in(kind, rows) for kind, rows in panels.items()),
        subtitle=_subtitle(findings),
        key=_key(findings),
    )
    top = _plot_top(figure)
    # Panels have their places in inches, so that words and rows lie beside each other.
    figure.set_layout_engine("none")
    for kind, rows in panels.items():
        _draw_panel(figure, kind, rows, top)
        top -= _height_in(kind, rows)
    return figure


def _no_claim(run: Run) -> str:
    if len(run.record.treatments) == 1:
        return "This run has one treatment, so there is nothing to compare it with."
    return "This run has no claim that compares two of its treatments."


def _panels(findings: list[Finding]) -> dict[Kind, list[Row]]:
    """Return the rows by panel; those without a number last, their words where no picture is."""
    found: dict[Kind, list[Row]] = {}
    for finding in findings:
        kind = _kind(finding)
        right_in = WIDTH_IN - MARGIN_IN - PLOT_LEFT_IN if kind == WITHOUT else RIGHT_IN
        found.setdefault(kind, []).append(row(finding, right_in))
    return {kind: found[kind] for kind in sorted(found, key=lambda kind: kind == WITHOUT)}


def _kind(finding: Finding) -> Kind:
    if finding.effect is None:
        return WITHOUT
    response = finding.response
    words, unit = response.noun or response.title, response.unit
    return finding.contrast.scale, words, unit if finding.contrast.scale == "difference" else ""


def _height_in(kind: Kind, rows: list[Row]) -> float:
    return sum(each.height_in for each in rows) + (AXIS_IN if kind != WITHOUT else PAD_IN)


def _title(findings: list[Finding]) -> str:
    if len(findings) == 1:
        return str(findings[0].verdict)
    counts = Counter(finding.verdict.outcome for finding in findings)
    verdicts = [f"{counts[each]} {each}" for each in Outcome if counts[each]]
    # A number stays on the line of what it counts.
    return (
        f"of {len(findings)} claims {', '.join(each.replace(' ', NO_BREAK) for each in verdicts)}"
    )


def _subtitle(findings: list[Finding]) -> str:
    scales = {finding.contrast.scale for finding in findings if finding.effect is not None}
    if not scales:
        return ""
    what = " or ".join(sorted(scales, reverse=True))
    return (
        f"Every point is one block, the first on top: the {what} of the two sides named in grey. At"
        " the right: the verdict, and the estimate over all blocks with its 95% interval. An arrow"
        " ends an interval that leaves the picture."
    )


def _plot_top(figure: LabFigure) -> float:
    """Return how far above the figure's lower end its plots begin, in inches."""
    engine = figure.get_layout_engine()
    assert engine is not None
    _, bottom, _, height = engine.get()["rect"]
    return float((bottom + height) * figure.get_size_inches()[1])


def _draw_panel(figure: LabFigure, kind: Kind, rows: list[Row], top_in: float) -> None:
    width, height = figure.get_size_inches()
    rows_in = sum(each.height_in for each in rows)
    place = PLOT_LEFT_IN / width, (top_in - rows_in) / height, PLOT_IN / width, rows_in / height
    axes = figure.add_axes(place)
    axes.set_ylim(rows_in, 0.0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    if kind == WITHOUT:
        axes.set_axis_off()
    else:
        _scale(axes, kind, [each.finding for each in rows])
    top = 0.0
    for each in rows:
        effect_rows.write(axes, each.claim, MARGIN_IN - PLOT_LEFT_IN, top)
        effect_rows.write(axes, each.result, 0.0 if kind == WITHOUT else PLOT_IN + GAP_IN, top)
        if top:
            effect_rows.rule(axes, MARGIN_IN - PLOT_LEFT_IN, WIDTH_IN - PLOT_LEFT_IN, top)
        if each.finding.effect is not None:
            effect_rows.draw(axes, each.finding, top, each.height_in)
        top += each.height_in


def _scale(axes: Axes, kind: Kind, findings: list[Finding]) -> None:
    scale, words, unit = kind
    is_ratio = scale == "ratio"
    on = np.log if is_ratio else np.asarray
    values: list[float] = []
    ends: list[float] = []
    for finding in findings:
        assert finding.effect is not None
        published = effect_rows.published_value(finding)
        values += [*_of_blocks(finding), finding.effect.estimate]
        values += [] if published is None else [published]
        ends += [finding.effect.low, finding.effect.high]
    low, high = limits(on(values), on(ends), math.log(LEAST) if is_ratio else 0.0)
    if is_ratio:
        ratio_axis(axes, math.exp(low), math.exp(high), PLOT_IN)
    else:
        axes.set_xlim((low, high) if low < high else (-1.0, 1.0))
    axes.axvline(1.0 if is_ratio else 0.0, color=MUTED, lw=1.0, zorder=1, gid="no effect")
    name = "ratio (log)" if is_ratio else f"difference{f', {unit}' if unit else ''}"
    axes.set_xlabel(f"{name}: more {words} \N{RIGHTWARDS ARROW}")
    only_grid(axes, "x")


def _key(findings: list[Finding]) -> list[Line2D]:
    effects = [finding.effect for finding in findings if finding.effect is not None]
    if not effects:
        return []
    handles = [
        Line2D([], [], ls="", marker="o", ms=4, mfc=effect_rows.POINT, mec=effect_rows.MEASURED,
               mew=0.4, label="one block"),
        Line2D([], [], color=MUTED, lw=1.0, label="no effect"),
    ]  # fmt: skip
    if any(math.isfinite(each.low) for each in effects):
        handles.insert(1, Line2D([], [], color=effect_rows.MEASURED, marker="s", ms=5, lw=2.0,
                                 label="estimate and 95% interval"))  # fmt: skip
    if any(effect_rows.published_value(finding) is not None for finding in findings):
        handles.append(Line2D([], [], ls="", marker="D", ms=5, mfc="white", mew=1.3,
                              mec=effect_rows.CLAIMED, label="published"))  # fmt: skip
    return handles
