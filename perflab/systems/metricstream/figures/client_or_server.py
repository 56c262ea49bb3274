"""Client-limited or server-limited: the naive client and the lab's own on one server."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.treatments.evaluation import Finding
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import trials_shown
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.points import draw_points
from perflab.figures.theme import MUTED
from perflab.figures.view import Judging, View
from perflab.recordings import Run
from perflab.systems.metricstream.limited_by import (
    PAIRS,
    REACHED,
    Pair,
    blocks_of,
    finding_of,
    has_pairs,
    in_words,
    judged_claims,
    pairs_of,
)

TITLE = "client-limited or server-limited"
RATE, SUCCESS, CORES = "rate", "success", "cores"
NAIVE, OWN, MARK, SAID = "as told by the naive client", "the lab's client", "mark", "said"
LOOKS = {
    NAIVE: Look(PALETTE[1], "s", "naive client, as it counts itself"),
    OWN: Look(PALETTE[0], "o", "the lab's client"),
}
# Panel: its words, and the columns of the naive client's trials and of the lab's, in which unit.
PANELS: Mapping[str, tuple[str, str, str, float]] = {
    RATE: ("answers per second", "told_achieved_rps", "throughput_rps", 1.0),
    SUCCESS: ("success, %", "told_success_rate", "success_share", 100.0),
    CORES: ("the server's CPU, cores", "cpu_share_metricstream", "cpu_share_metricstream", 1.0),
}
COLUMNS = ["panel", "what", "treatment", "state", "value", "words"]


def limits_table(run: Run) -> pd.DataFrame:
    """Return a row per panel and trial of each pair, marks, and what is said of each pair.

    ``mark`` is the target rate, 100% and one core; ``said`` has a pair's word, the ratio of its
    rates with its 95% interval, and what that says of claim 4.
    """
    trials = trials_shown(run)
    pairs = pairs_of(run)
    if trials.empty or not pairs:
        return pd.DataFrame(columns=COLUMNS)
    points = [
        _points(run, trials, rung, who, panel)
        for pair in pairs
        for rung, who in ((pair.naive, NAIVE), (pair.own, OWN))
        for panel in PANELS
    ]
    if not any(len(each) for each in points):
        return pd.DataFrame(columns=COLUMNS)
    target = float(run.record.parameters["target_rate"])
    marks = [
        {"panel": panel, "what": MARK, "value": value}
        for panel, value in ((RATE, target), (SUCCESS, 100.0), (CORES, 1.0))
    ]
    said = [{"what": SAID, "words": _said(run, pair)} for pair in pairs]
    parts = [*(each for each in points if len(each)), pd.DataFrame([*marks, *said])]
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def _points(run: Run, trials: pd.DataFrame, rung: str, who: str, panel: str) -> pd.DataFrame:
    _, told, counted, factor = PANELS[panel]
    own = trials[trials["treatment"].isin(run.record.selected({"rung": rung}))]
    column = told if who == NAIVE else counted
    values = own.get(column, pd.Series(math.nan, index=own.index)).astype(float)
    return own[["treatment", "state"]].assign(panel=panel, what=who, value=factor * values)


def _said(run: Run, pair: Pair) -> str:
    found = finding_of(run, pair)
    ratio = _ratio(found)
    judged = f"; {pair.claim}: {found.verdict}" if pair.claim else ""
    return f"{pair.words}: {in_words(blocks_of(run, pair))}{ratio}{judged}"


def _ratio(found: Finding) -> str:
    effect = found.effect
    if effect is None:
        return ""
    interval = f" [{effect.low:.2f}, {effect.high:.2f}]" if math.isfinite(effect.low) else ""
    return f", naive over lab's rate {effect.estimate:.2f}{interval}, n = {effect.n}"


def draw_limits(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per treatment of the pairs, and a panel each for rate, success and server CPU."""
    # Side by side what is one pair.
    shown = table.loc[table["what"].isin(LOOKS), "treatment"].unique()
    looks = {name: page.looks[name] for name in shown if name in page.looks}
    told = table.loc[table["what"] == SAID, "words"].astype(str)
    said = ". ".join(f"{each[:1].upper()}{each[1:]}" for each in told)
    own_rows = rows.of_looks(looks, page.sheet, 0.4)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own_rows.height_in,
        subtitle="Points: trials (hollow: refused). Dashed: the target rate, all of it, one core."
        f" A generator that misses {REACHED:.0%} of its target on a server that has room, where the"
        " lab's client reaches it in the same block, is itself the limit. Success: of what was"
        f" planned; as told, achieved over target rate. {said}.",
        key=[
            Line2D([], [], ls="", marker=look.marker, ms=4, color=look.color, label=look.label)
            for look in LOOKS.values()
        ],
    )
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (panel, (words, *_)) in zip(panels, PANELS.items(), strict=True):
        _draw(axes, table[table["panel"] == panel], own_rows)
        axes.set_xlabel(words)
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame, own_rows: rows.Rows[str]) -> None:
    places = own_rows.frame(axes)
    own_rows.rules(axes)
    points = own[own["what"].isin(LOOKS)]
    at = points["treatment"].map(places).astype(float)
    draw_points(axes, points.assign(y=at), "value", "y", "what", LOOKS, s=20)
    for row in own[own["what"] == MARK].to_dict("records"):
        _mark(axes, row)
    axes.set_xlim(0, 1.1 * float(own["value"].max()))
    only_grid(axes, "x")


def _mark(axes: Axes, row: Mapping[Hashable, Any]) -> None:
    axes.axvline(float(row["value"]), color=MUTED, ls="--", lw=1.0, zorder=1, gid="mark")


CLIENT_OR_SERVER = View(
    "client_or_server", TITLE, limits_table, draw_limits, suits=has_pairs,
    judging=Judging(tuple(pair.claim for pair in PAIRS if pair.claim), judged_claims),
)  # fmt: skip
