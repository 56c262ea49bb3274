"""The study's three targets, configuration by configuration: k of n trials, with its interval."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import PALETTE
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.plots.published_marks import COLOR
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.study_table import SAME
from perflab.systems.chat.analysis.targets import targets_met
from perflab.systems.chat.figures.ladder import has_rungs

TITLE = "the three targets, met in k of n trials"


def targets_table(run: Run) -> pd.DataFrame:
    """Return :func:`targets_met` of the treatments that have trials."""
    table = targets_met(run)
    return table[table["trials"] > 0]


def draw_targets(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel for each target and a row for each treatment."""
    kinds = " and ".join(sorted(set(table["of"])))
    own_rows = rows.of_looks(page.looks, page.sheet, 0.34)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.7 + own_rows.height_in,
        subtitle=f"Share of all trials of a rung whose percentile of {kinds} is within the target,"
        " with its exact 95% interval; a trial that was refused or has too few of them is not"
        " within it. Pings stand for a rung at the published load, deliveries for any other.",
        key=_key(),
    )
    panels = figure.subplots(1, table["percentile"].nunique(), sharey=True)
    for axes, (share, own) in zip(panels, table.groupby("percentile"), strict=True):
        places = own_rows.frame(axes)
        for each in own.to_dict("records"):
            _draw(axes, {str(name): value for name, value in each.items()}, places)
        own_rows.rules(axes)
        axes.set_xlim(-0.06, 1.06)
        axes.set_xticks([0, 0.5, 1], ["0", "50%", "100%"])
        axes.set_xlabel(f"{share} within {own['target_ms'].iloc[0]:,.0f} ms")
        only_grid(axes, "x")
    return finish(figure)


def _draw(axes: Axes, each: dict[str, float | str], places: dict[str, float]) -> None:
    y, trials, met = places[str(each["treatment"])], int(each["trials"]), int(each["met"])
    if int(each["unknown"]) == trials:
        axes.text(0.5, y + 0.12, "n too small", ha="center", va="center", color=MUTED, fontsize=7.5)
    else:
        axes.plot([each["low"], each["high"]], [y + 0.22] * 2, color=PALETTE[0], lw=1.4)
        axes.plot([met / trials], [y + 0.22], ls="", marker="o", ms=5, color=PALETTE[0])
        axes.text(0.5, y - 0.02, f"{met} of {trials}", ha="center", va="center", color=INK,
                  fontsize=7.5)  # fmt: skip
    if each["published_ms"] == each["published_ms"]:
        held = float(each["published_ms"]) <= float(each["target_ms"])
        fill, edge = (COLOR, "white") if each["load"] == SAME else ("white", COLOR)
        axes.plot([float(held)], [y - 0.24], ls="", marker="D", ms=5, mfc=fill, mec=edge, mew=1.2,
                  clip_on=False)  # fmt: skip


def _key() -> list[Line2D]:
    return [
        Line2D([], [], color=PALETTE[0], marker="o", ms=5, lw=1.4, label="measured"),
        Line2D([], [], ls="", marker="D", ms=5, mfc=COLOR, mec="white",
               label="published: met (100%) or not (0)"),
        Line2D([], [], ls="", marker="D", ms=5, mfc="white", mec=COLOR,
               label="published; this run: other load"),
    ]  # fmt: skip


TARGETS_MET = View("targets_met", TITLE, targets_table, draw_targets, suits=has_rungs)
