"""Delivery latency against CPU over windows of a second, coloured by phase, sized by volume."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.curves.knees import knee
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Plane, Planes, Rules
from perflab.figures.charts.layers import marker
from perflab.figures.page import Page
from perflab.figures.theme import FAINT, INK, MUTED
from perflab.figures.view import View
from perflab.recordings import Run, published
from perflab.systems.chat.figures import phases

TITLE = "delivery latency against CPU of the service"
KNEE = "knee"
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
    points = shown.assign(what=phases.WINDOW, cpu_percent=100 * shown["cpu"])
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


@dataclass(frozen=True)
class Knee:
    """The fitted bend in its interval, as a layer."""

    def draw(self, axes: Axes, own: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Draw the bend of one panel, where it has one."""
        for each in own[own["what"] == KNEE].dropna(subset=["cpu_percent"]).to_dict("records"):
            axes.axvspan(each["low"], each["high"], color=FAINT, lw=0, zorder=0)
            axes.axvline(each["cpu_percent"], color=INK, lw=1.1, ls=(0, (4, 2)), zorder=1)

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:  # noqa: ARG002
        """Return what the area of a point stands for; the bend is explained in words."""
        most, size = float(table["messages_per_s"].max()), float(np.sqrt(3.0 + LARGEST_POINT))
        return [marker("o", MUTED, True, size, label=f"{most:,.0f} messages/s")]


def draw_delivery_cpu(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw latency against CPU, one panel per treatment, with the fitted knee if there is one."""
    seen = table[table["what"].isin(PUBLISHED.values())]
    most = float(table["messages_per_s"].max())
    chart = Planes(
        TITLE,
        "Every point is a second of a valid trial; its area is the messages delivered in it."
        f" Dotted: where the study saw latency {_seen(seen)}. Dashed, in a band: the bend of the"
        " nearest broken line with its 95% interval, if there is one; from blocks of windows it is"
        f" for these trials only.{phases.left_out(page)}",
        layers=(
            phases.points(s=None, alpha=0.65, zorder=2,
                          size="messages_per_s", size_norm=(0, max(most, 1.0)),
                          sizes=(3.0, 3.0 + LARGEST_POINT)),
            Rules((*PUBLISHED.values(),), ls=":"),
            Knee(),
        ),
        planes=_planes,
        x="cpu_percent",
        y="p90_ms",
        height_in=3.6,
        further_in=2.8,
        share_x=True,
        share_y=True,
        empty=phases.EMPTY,
    )  # fmt: skip
    return chart.draw(table, page)


def _planes(table: pd.DataFrame, page: Page) -> dict[str, Plane]:
    x = Axis(f"CPU use of {phases.SERVICE}, % of a core", ends=(0, None))
    y = Axis("p90 per second, ms (log)", log=True)
    words = table[table["what"] == KNEE].set_index("treatment")["words"]
    shown = [*page.looks.items()][: phases.MOST_PANELS]
    return {
        name: Plane(x, y, "\n".join(filter(None, (look.label, words.get(name, "")))))
        for name, look in shown
    }


def _seen(seen: pd.DataFrame) -> str:
    places = zip(seen["what"], seen["cpu_percent"], strict=True)
    return " and ".join(f"{what} ({percent:g}%)" for what, percent in places)


DELIVERY_CPU = View("delivery_cpu", TITLE, delivery_cpu_table, draw_delivery_cpu, phases.of_crowds)
