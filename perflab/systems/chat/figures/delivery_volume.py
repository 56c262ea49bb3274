"""Delivery latency against message volume, coloured by phase, with the study's targets."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.points import draw_points
from perflab.figures.theme import MUTED
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.recordings import Run
from perflab.systems.chat.analysis.held import targets_ms
from perflab.systems.chat.figures import phases

TITLE = "delivery latency against message volume"
WINDOW, TARGET = "window", "target"
COLUMNS = ["what", "treatment", "phase", "messages_per_s", "p90_ms"]


def delivery_volume_table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90, and the study's target for it."""
    shown = phases.shown_windows(run, ["messages_per_s", "p90_ms"]).assign(what=WINDOW)
    if shown.empty:
        return pd.DataFrame(columns=COLUMNS)
    target = pd.DataFrame([{"what": TARGET, "p90_ms": targets_ms()["delivery_p90_ms"]}])
    return pd.concat([shown, target], ignore_index=True)[COLUMNS]


def draw_delivery_volume(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw latency against volume, one panel per treatment."""
    windows = table[table["what"] == WINDOW]
    target_ms = float(table.loc[table["what"] == TARGET, "p90_ms"].iloc[0])
    shown = phases.shown_treatments(page)
    grid = phases.grid_of(page, shown)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.4 + 2.6 * (grid.down - 1)),
        subtitle="Every point is a second of a valid trial. Dashed: the study's target of"
        f" {target_ms:g} ms for the p90.{phases.left_out(page, shown)}",
        key=phases.key(windows["phase"]),
    )
    panels = phases.panels(
        figure, grid, "messages delivered per second", "p90 per second, ms (log)"
    )
    for axes, (name, look) in zip(panels, shown.items(), strict=True):
        axes.set_title(tick_label(look.label, grid.room_in(3.2), 9, 1))
        _draw(axes, windows[windows["treatment"] == name], target_ms)
    return finish(figure)


def _draw(axes: Axes, own: pd.DataFrame, target_ms: float) -> None:
    if own.empty:
        phases.say_nothing(axes)
        return
    draw_points(axes, own, "messages_per_s", "p90_ms", "phase", phases.LOOKS, s=10, alpha=0.7)
    log_axis(axes, "y")
    axes.axhline(target_ms, color=MUTED, lw=1.0, ls=(0, (4, 2)), zorder=1)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    only_grid(axes, "y")


DELIVERY_VOLUME = View(
    "delivery_volume", TITLE, delivery_volume_table, draw_delivery_volume, phases.of_crowds
)
