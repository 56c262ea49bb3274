"""The effect of every claim of a run: paired blocks, estimate, published value and verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from perflab.analysis.effect_words import unit_of
from perflab.analysis.evaluation import Finding
from perflab.analysis.findings import published_text
from perflab.analysis.results import OPEN
from perflab.analysis.zones import is_published
from perflab.figures.canvas import (
    LABEL_PT,
    MARGIN_IN,
    TEXT_IN,
    WIDTH_IN,
    LabFigure,
    only_grid,
    page_canvas,
)
from perflab.figures.charts.axes import log_axis
from perflab.figures.origin import Page
from perflab.figures.plots import effect_rows
from perflab.figures.plots.effect_rows import (
    BETWEEN_IN,
    LEAST,
    LEVEL,
    PAD_IN,
    PLOT_IN,
    PLOT_LEFT_IN,
    SHARE,
    Claim,
    Row,
    limits,
    row,
)
from perflab.figures.theme import MUTED, wrap
from perflab.figures.view import ARROW, View
from perflab.recordings import Contrast, Run

TITLE = "what every claim comes to, block by block"
AXIS_IN = 0.5
CLAIM_COLUMNS = [field.name for field in fields(Claim)]
# A panel holds rows that share an axis: what is measured, in which unit, and on which scale.
Kind = tuple[str, str, str]
WITHOUT: Kind = ("", "", "")


def effect_table(run: Run, findings: Sequence[Finding]) -> pd.DataFrame:
    """Return a row per contrast: the published and the measured effect, and the verdict.

    A larger effect means more of ``quantity`` (in ``unit``). ``of_blocks`` holds the effects in the
    compared blocks, or starts that blocks share, in order, and ``left_out`` counts the other
    blocks. ``limit`` and ``shared_starts`` are there where a claim has one.
    """
    # What a rule of the system judges has a figure of its own.
    of_contrasts = [finding for finding in findings if finding.contrast in run.record.contrasts]
    table = pd.DataFrame([*map(effect_row, of_contrasts)], columns=CLAIM_COLUMNS)
    used = {"limit": table["limit"].notna(), "shared_starts": table["shared_starts"] != ""}
    return table.drop(columns=[name for name, of_claims in used.items() if not of_claims.any()])


def effect_row(finding: Finding) -> dict[str, object]:
    """Return the row of a claim."""
    contrast, verdict, effect = finding.contrast, finding.verdict, finding.effect
    value = _published_value(contrast)
    factor, unit = unit_of(finding)
    return {
        "claim": contrast.claim,
        "name": contrast.name,
        "scale": contrast.scale,
        "quantity": finding.response.noun or finding.response.title,
        "unit": unit,
        "published": published_text(finding),
        "published_value": math.nan if value is None else factor * value,
        "measured": factor * effect.estimate if effect else math.nan,
        "low": factor * effect.low if effect else math.nan,
        "high": factor * effect.high if effect else math.nan,
        "of_blocks": " ".join(f"{factor * value:.6g}" for value in _of_blocks(finding)),
        "left_out": finding.left_out,
        "verdict": str(verdict),
        "reason": verdict.reason if is_published(contrast) or verdict.result in OPEN else "",
        "absent": finding.absent,
        "limit": math.nan if contrast.limit is None else factor * contrast.limit,
        "shared_starts": effect.n_text if effect and effect.of_blocks else "",
    }


def _of_blocks(finding: Finding) -> list[float]:
    if finding.effect is None:
        return []
    values = finding.effect.by_block
    return [math.exp(value) for value in values] if finding.contrast.scale == "ratio" else [*values]


def _published_value(contrast: Contrast) -> float | None:
    """Return the published value; None if only a direction is claimed."""
    if contrast.scale != "ratio":
        return contrast.published_difference
    if contrast.published_ratio is None and contrast.published_direction == "none":
        return 1.0
    return contrast.published_ratio


def _no_claim(page: Page) -> str:
    if len(page.styles) == 1:
        return "This run has one treatment, so there is nothing to compare it with."
    return "This run has no claim that compares two of its treatments."


def draw_effects(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per claim: its blocks, estimate, interval, published value and verdict."""
    claims = [effect_rows.claim_of(record) for record in table.to_dict("records")]
    panels = _panels(claims)
    figure = page_canvas(
        page,
        page.question or page.title,
        plot_height_in=sum(_height_in(kind, rows) for kind, rows in panels.items()),
        subtitle=_subtitle(claims),
        key=_legend_handles(claims),
    )
    top = figure.plot_top_in
    # Panels are placed in inches, so that words and rows lie side by side.
    figure.set_layout_engine("none")
    for kind, rows in panels.items():
        _draw_panel(figure, kind, rows, top)
        top -= _height_in(kind, rows)
    return figure


def _panels(claims: list[Claim]) -> dict[Kind, list[Row]]:
    """Return the rows by panel; the rows without an effect are last."""
    panels: dict[Kind, list[Row]] = {}
    for claim in claims:
        panels.setdefault(_kind(claim), []).append(row(claim))
    return {kind: panels[kind] for kind in sorted(panels, key=lambda kind: kind == WITHOUT)}


def _kind(claim: Claim) -> Kind:
    return (claim.scale, claim.quantity, claim.unit) if claim.of_blocks else WITHOUT


def _height_in(kind: Kind, rows: list[Row]) -> float:
    return sum(item.height_in for item in rows) + (AXIS_IN if kind != WITHOUT else PAD_IN)


def _subtitle(claims: list[Claim]) -> str:
    scales = {claim.scale for claim in claims if claim.of_blocks}
    if not scales:
        return ""
    what = " or ".join(sorted(scales, reverse=True))
    named = "what is" if scales & {SHARE, LEVEL} else "the two sides"
    point = "start that blocks share" if any(claim.shared_starts for claim in claims) else "block"
    has_limit = any(math.isfinite(claim.limit) for claim in claims)
    dashed = " Dashed: the limit of a claim, fixed before the run." * has_limit
    return (
        f"Every point is one {point}, the first on top: the {what} of {named} named in grey."
        f"{dashed}"
        " At the right: the verdict, and the estimate over all blocks with its 95% interval."
        f" {ARROW}"
    )


def _draw_panel(figure: LabFigure, kind: Kind, rows: list[Row], top_in: float) -> None:
    width, height = figure.get_size_inches()
    rows_in = sum(claim_row.height_in for claim_row in rows)
    place = PLOT_LEFT_IN / width, (top_in - rows_in) / height, PLOT_IN / width, rows_in / height
    axes = figure.add_axes(place)
    axes.set_ylim(rows_in, 0.0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    if kind == WITHOUT:
        axes.set_axis_off()
    else:
        _scale(axes, kind, [claim_row.claim for claim_row in rows])
    begin_in = MARGIN_IN - PLOT_LEFT_IN
    result_in = 0.0 if kind == WITHOUT else PLOT_IN + BETWEEN_IN
    top = 0.0
    for claim_row in rows:
        effect_rows.write(axes, claim_row.question, begin_in, top)
        effect_rows.write(axes, claim_row.result, result_in, top)
        if top:
            effect_rows.rule(axes, begin_in, WIDTH_IN - PLOT_LEFT_IN, top)
        if claim_row.claim.of_blocks:
            effect_rows.draw(axes, claim_row.claim, top, claim_row.height_in)
        top += claim_row.height_in


def _scale(axes: Axes, kind: Kind, claims: list[Claim]) -> None:
    scale, quantity, unit = kind
    is_ratio = scale == "ratio"
    whole = [0.0, 100.0] if unit == "%" else []
    on = np.log if is_ratio else np.asarray
    values = [
        value
        for claim in claims
        for value in (
            *claim.of_blocks, claim.measured, claim.published_value, claim.limit, *whole,
        )
    ]  # fmt: skip
    ends = [end for claim in claims for end in (claim.low, claim.high)]
    # A bound has one open end: a ratio of 0, or infinity.
    ends = [end for end in ends if math.isfinite(end) and (end > 0 or not is_ratio)]
    low, high = limits(on(values), on(ends), math.log(LEAST) if is_ratio else 0.0)
    if is_ratio:
        axes.update_datalim([(math.exp(low), 0.0), (math.exp(high), 0.0)], updatey=False)
        log_axis(axes, "x")
        axes.set_xlim(math.exp(low), math.exp(high))
    else:
        axes.set_xlim((low, high) if low < high else (-1.0, 1.0))
    if unit == "%":
        axes.xaxis.set_major_formatter(PercentFormatter())
    if scale == SHARE:
        words = f"share of {quantity}"
    elif scale == LEVEL:
        words = f"{quantity}{f', {unit}' if unit not in ('', '%') else ''}"
    else:
        axes.axvline(1.0 if is_ratio else 0.0, color=MUTED, lw=1.0, zorder=1, gid="no effect")
        name = "ratio (log)" if is_ratio else f"difference{f', {unit}' if unit else ''}"
        words = f"{name}: more {quantity} \N{RIGHTWARDS ARROW}"
    axes.set_xlabel("\n".join(wrap(words, LABEL_PT, TEXT_IN)))
    only_grid(axes, "x")


def _legend_handles(claims: list[Claim]) -> list[Line2D]:
    """Return the legend's marks that occur among the claims; none if nothing was measured."""
    measured = [claim for claim in claims if claim.of_blocks]
    if not measured:
        return []
    handles = [
        Line2D([], [], ls="", marker="o", ms=4, mfc=effect_rows.POINT, mec=effect_rows.MEASURED,
               mew=0.4, label="one block"),
    ]  # fmt: skip
    if any(claim.scale not in (SHARE, LEVEL) for claim in measured):
        handles.append(Line2D([], [], color=MUTED, lw=1.0, label="no effect"))
    if any(math.isfinite(claim.limit) for claim in measured):
        handles.append(Line2D([], [], color=MUTED, lw=1.0, ls="--", label="limit of a claim"))
    if any(math.isfinite(claim.low) for claim in measured):
        handles.insert(1, Line2D([], [], color=effect_rows.MEASURED, marker="s", ms=5, lw=2.0,
                                 label="estimate and 95% interval"))  # fmt: skip
    if any(math.isfinite(claim.published_value) for claim in claims):
        handles.append(Line2D([], [], ls="", marker="D", ms=5, mfc="white", mew=1.3,
                              mec=effect_rows.CLAIMED, label="published"))  # fmt: skip
    return handles


EFFECT = View("effect", TITLE, effect_table, draw_effects, empty=_no_claim, of_findings=True)
