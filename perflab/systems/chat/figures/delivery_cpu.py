"""Delivery latency against CPU over windows of a second, coloured by phase, sized by volume."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.curves.knees import knee
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.points import draw_points
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.recordings import Run, published
from perflab.systems.chat.figures import phases

TITLE = "delivery latency against CPU of the service"
WINDOW, KNEE = "window", "knee"
COLUMNS = [
    "what", "treatment", "phase", "cpu_percent", "low", "high", "messages_per_s", "p90_ms", "words",
]  # fmt: skip
# The study's reading of its own figure: latency rises, then spikes.
PUBLISHED = {"cpu_where_latency_rises": "rise", "cpu_where_latency_spikes": "spike"}
LARGEST_POINT = 60.0


def delivery_cpu_table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90 and a CPU share, and what is said of them.

    ``what`` is a window; the fitted knee of a treatment, with its 95% interval where the data
    support one and always in ``words``; or where the study saw latency "rise" and "spike".
    """
    every = phases.windows(run)[["treatment", "trial_id", "cpu", "p90_ms"]].dropna()
    shown = phases.shown_windows(run, ["cpu", "messages_per_s", "p90_ms"])
    if shown.empty:
        return pd.DataFrame(columns=COLUMNS)
    points = shown.assign(what=WINDOW, cpu_percent=100 * shown["cpu"])
    names = list(dict.fromkeys(shown["treatment"]))
    knees = [_knee(name, every[every["treatment"] == name]) for name in names]
    parts = [points, pd.DataFrame(knees), _published()]
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def _knee(treatment: str, own: pd.DataFrame) -> dict[str, object]:
    found = knee(own, "cpu", "p90_ms")
    words = f"{found.words()} (n = {found.unit})" if found.unit else found.words()
    places = (found.cpu, found.low, found.high) if found.supported else (math.nan,) * 3
    middle, low, high = (100 * place for place in places)
    return {
        "what": KNEE, "treatment": treatment, "cpu_percent": middle, "low": low, "high": high,
        "words": words,
    }  # fmt: skip


def _published() -> pd.DataFrame:
    known = published("chat")
    known = known[known["measure"].isin(PUBLISHED)]
    return pd.DataFrame(
        {"what": known["measure"].map(PUBLISHED), "cpu_percent": known["value"].astype(float)}
    )


def draw_delivery_cpu(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw latency against CPU, one panel per treatment, with the fitted knee if there is one."""
    windows = table[table["what"] == WINDOW]
    seen = table[table["what"].isin(PUBLISHED.values())]
    shown = phases.shown_treatments(page)
    grid = phases.grid_of(page, shown)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.6 + 2.8 * (grid.down - 1)),
        subtitle="Every point is a second of a valid trial; its area is the messages delivered in"
        f" it. Dotted: where the study saw latency {_seen(seen)}. Dashed, in a band:"
        " the bend of the nearest broken line with its 95% interval, if there is one; from blocks"
        f" of windows it is for these trials only.{phases.left_out(page, shown)}",
        key=[*phases.key(windows["phase"]), *_size_key(windows)],
    )
    panels = phases.panels(
        figure, grid, f"CPU use of {phases.SERVICE}, % of a core", "p90 per second, ms (log)"
    )
    most = float(windows["messages_per_s"].max())
    for axes, (name, look) in zip(panels, shown.items(), strict=True):
        own = table[table["treatment"] == name]
        _say(axes, look.label, own[own["what"] == KNEE], grid.room_in(3.2))
        _draw(axes, own[own["what"] == WINDOW], list(seen["cpu_percent"]), most)
    return finish(figure)


def _seen(seen: pd.DataFrame) -> str:
    places = zip(seen["what"], seen["cpu_percent"], strict=True)
    return " and ".join(f"{what} ({percent:g}%)" for what, percent in places)


def _say(axes: Axes, label: str, found: pd.DataFrame, room_in: float) -> None:
    """Write the title of a panel, and draw its knee."""
    title = tick_label(label, room_in, 8.5, 1)
    for each in found.to_dict("records"):
        title = f"{title}\n{tick_label(str(each['words']), room_in, 7.5, 3)}"
        if math.isfinite(each["cpu_percent"]):
            axes.axvspan(each["low"], each["high"], color=FAINT, lw=0, zorder=0)
            axes.axvline(each["cpu_percent"], color=INK, lw=1.1, ls=(0, (4, 2)), zorder=1)
    axes.set_title(title, size=8)


def _draw(axes: Axes, own: pd.DataFrame, seen: list[float], most: float) -> None:
    if own.empty:
        phases.say_nothing(axes)
        return
    for place in seen:
        axes.axvline(place, color=MUTED, lw=0.9, ls=":", zorder=1)
    draw_points(
        axes, own, "cpu_percent", "p90_ms", "phase", phases.LOOKS, s=None, alpha=0.65, zorder=2,
        size="messages_per_s", size_norm=(0, max(most, 1.0)), sizes=(3.0, 3.0 + LARGEST_POINT),
    )  # fmt: skip
    log_axis(axes, "y")
    axes.set_xlim(left=0)
    only_grid(axes, "y")


def _size_key(windows: pd.DataFrame) -> list[Line2D]:
    most, size = float(windows["messages_per_s"].max()), float(np.sqrt(3.0 + LARGEST_POINT))
    return [
        Line2D([], [], ls="", marker="o", ms=size, mfc="none", mec=MUTED,
               label=f"{most:,.0f} messages/s")
    ]  # fmt: skip


DELIVERY_CPU = View("delivery_cpu", TITLE, delivery_cpu_table, draw_delivery_cpu, phases.of_crowds)
