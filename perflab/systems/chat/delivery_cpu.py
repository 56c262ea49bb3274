"""Delivery latency against the CPU of the service, with the knee where one fits."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Plane, Planes, Points, Rules
from perflab.figures.charts.layers import marker
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.statistics.in_words import number
from perflab.statistics.knees import knee, times_as_steep
from perflab.systems.chat.windows import (
    EMPTY,
    MOST_PANELS,
    PHASE_STYLES,
    SERVICE,
    WINDOW,
    left_out,
    of_crowds,
    shown_windows,
    windows,
)

CPU_TITLE = "delivery latency against CPU of the service"
KNEE = "knee"
CPU_COLUMNS = [
    "what", "treatment", "phase", "cpu_percent", "low", "high", "messages_per_s", "p90_ms", "words",
]  # fmt: skip
FIGURE_1 = ("figure 1", "latency against CPU")
# The study's reading of its own figure: latency rises, then spikes.
PUBLISHED_CPU = {"cpu_where_latency_rises": "rise", "cpu_where_latency_spikes": "spike"}
LARGEST_POINT = 60.0


def delivery_cpu_table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90 and a CPU share, fitted knees, and published shares.

    ``what`` is a window, the fitted knee of a treatment (in ``words``, and with its 95% interval if
    the data support one), or the share at which the study saw latency "rise" or "spike".
    """
    seconds = windows(run)[["treatment", "trial_id", "cpu", "p90_ms"]].dropna()
    shown = shown_windows(run, ["cpu", "messages_per_s", "p90_ms"])
    if shown.empty:
        return pd.DataFrame(columns=CPU_COLUMNS)
    seconds_shown = shown.assign(what=WINDOW, cpu_percent=100 * shown["cpu"])
    names = list(dict.fromkeys(shown["treatment"]))
    knees = [_knee(name, seconds[seconds["treatment"] == name]) for name in names]
    stated = [
        {"what": what, "cpu_percent": published_value("chat", *FIGURE_1, measure)}
        for measure, what in PUBLISHED_CPU.items()
    ]
    parts = [seconds_shown, pd.DataFrame(knees), pd.DataFrame(stated)]
    return pd.concat(parts, ignore_index=True).reindex(columns=CPU_COLUMNS)


def _knee(treatment: str, seconds: pd.DataFrame) -> dict[str, object]:
    fit = knee(seconds, "cpu", "p90_ms")
    beyond = ", ".join(filter(None, map(partial(_beyond, seconds), PUBLISHED_CPU)))
    words = "; ".join(filter(None, [fit.words(), beyond]))
    words += f" (n = {fit.unit})" if fit.unit else ""
    shares = (fit.cpu, fit.low, fit.high) if fit.supported else (math.nan,) * 3
    middle, low, high = (100 * share for share in shares)
    return {
        "what": KNEE, "treatment": treatment, "cpu_percent": middle, "low": low, "high": high,
        "words": words,
    }  # fmt: skip


def _beyond(seconds: pd.DataFrame, measure: str) -> str:
    """Return how steep latency is from a share at which the study saw a change, and below it.

    It is empty where that is not known.
    """
    percent = published_value("chat", *FIGURE_1, measure)
    found = times_as_steep(seconds, "cpu", percent / 100, "p90_ms")
    if not all(map(math.isfinite, found)):
        return ""
    times, low, high = map(number, found)
    return f"from {percent:g}% on {times} times as steep [{low}, {high}]"


class Knee:
    """A layer that draws the fitted bend and its interval."""

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Draw the bend of one panel, if it has one."""
        for bend in rows[rows["what"] == KNEE].dropna(subset=["cpu_percent"]).to_dict("records"):
            axes.axvspan(bend["low"], bend["high"], color=FAINT, lw=0, zorder=0)
            axes.axvline(bend["cpu_percent"], color=INK, lw=1.1, ls=(0, (4, 2)), zorder=1)

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:  # noqa: ARG002
        """Return the key of the points' area; the caption explains the bend."""
        most, size = float(table["messages_per_s"].max()), float(np.sqrt(3.0 + LARGEST_POINT))
        return [marker("o", MUTED, True, size, label=f"{most:,.0f} messages/s")]


def draw_delivery_cpu(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw latency against CPU, one panel per treatment, with the fitted knee if there is one."""
    stated = table[table["what"].isin(PUBLISHED_CPU.values())].to_dict("records")
    published = " and ".join(f"{row['what']} ({row['cpu_percent']:g}%)" for row in stated)
    most_per_s = float(table["messages_per_s"].max())
    chart = Planes(
        CPU_TITLE,
        "Every point is a second of a valid trial; its area is the messages delivered in it."
        f" Dotted: where the study saw latency {published}. Dashed, in a band: the"
        " bend of the nearest broken line, or a step, with its 95% interval, if there is one."
        " Slopes are of 30 points on either side; outliers count as 3 deviations."
        f"{left_out(page)}",
        layers=(
            Points((WINDOW,), "phase", PHASE_STYLES, how={
                "s": None, "alpha": 0.65, "zorder": 2, "size": "messages_per_s",
                "size_norm": (0, max(most_per_s, 1.0)), "sizes": (3.0, 3.0 + LARGEST_POINT),
            }),
            Rules((*PUBLISHED_CPU.values(),), ls=":"),
            Knee(),
        ),
        planes=_cpu_planes,
        x="cpu_percent",
        y="p90_ms",
        height_in=3.6,
        further_in=2.8,
        share_x=True,
        share_y=True,
        empty=EMPTY,
    )  # fmt: skip
    return chart.draw(table, page)


def _cpu_planes(table: pd.DataFrame, page: Page) -> dict[str, Plane]:
    x = Axis(f"CPU use of {SERVICE}, % of a core", ends=(0, None))
    y = Axis("p90 per second, ms", ends=(0, None))
    words = table[table["what"] == KNEE].set_index("treatment")["words"]
    shown = [*page.styles.items()][:MOST_PANELS]
    return {
        name: Plane(x, y, "\n".join([style.label, *words.get(name, "").split("; ")]))
        for name, style in shown
    }


DELIVERY_CPU = View("delivery_cpu", CPU_TITLE, delivery_cpu_table, draw_delivery_cpu, of_crowds)
