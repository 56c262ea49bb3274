"""Latency of deliveries over CPU and over volume, and beside the burst model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import (
    Axis,
    Intervals,
    Marks,
    Plane,
    Planes,
    RowChart,
    Rules,
    Texts,
    treatment_panels,
)
from perflab.figures.charts.layers import marker
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, INK, MUTED, PALETTE
from perflab.figures.view import View
from perflab.recordings import Run, published
from perflab.statistics.knees import knee
from perflab.systems.chat.analysis.bursts import burst_model
from perflab.systems.chat.analysis.users_held import targets_ms
from perflab.systems.chat.figures import ladder

CPU_TITLE = "delivery latency against CPU of the service"
KNEE = "knee"
CPU_COLUMNS = [
    "what", "treatment", "phase", "cpu_percent", "low", "high", "messages_per_s", "p90_ms", "words",
]  # fmt: skip
# The study's reading of its own figure: latency rises, then spikes.
PUBLISHED = {"cpu_where_latency_rises": "rise", "cpu_where_latency_spikes": "spike"}
LARGEST_POINT = 60.0


def delivery_cpu_table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90 and a CPU share, fitted knees, and published shares.

    ``what`` is a window, the fitted knee of a treatment (in ``words``, and with its 95% interval if
    the data support one), or the share at which the study saw latency "rise" or "spike".
    """
    windows = ladder.windows(run)[["treatment", "trial_id", "cpu", "p90_ms"]].dropna()
    shown = ladder.shown_windows(run, ["cpu", "messages_per_s", "p90_ms"])
    if shown.empty:
        return pd.DataFrame(columns=CPU_COLUMNS)
    points = shown.assign(what=ladder.WINDOW, cpu_percent=100 * shown["cpu"])
    names = list(dict.fromkeys(shown["treatment"]))
    knees = [_knee(name, windows[windows["treatment"] == name]) for name in names]
    parts = [points, pd.DataFrame(knees), _published()]
    return pd.concat(parts, ignore_index=True).reindex(columns=CPU_COLUMNS)


def _knee(treatment: str, windows: pd.DataFrame) -> dict[str, object]:
    fit = knee(windows, "cpu", "p90_ms")
    words = f"{fit.words()} (n = {fit.unit})" if fit.unit else fit.words()
    shares = (fit.cpu, fit.low, fit.high) if fit.supported else (math.nan,) * 3
    middle, low, high = (100 * share for share in shares)
    return {
        "what": KNEE, "treatment": treatment, "cpu_percent": middle, "low": low, "high": high,
        "words": words,
    }  # fmt: skip


def _published() -> pd.DataFrame:
    table = published("chat")
    table = table[table["measure"].isin(PUBLISHED)]
    return pd.DataFrame(
        {"what": table["measure"].map(PUBLISHED), "cpu_percent": table["value"].astype(float)}
    )


@dataclass(frozen=True)
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
    rows = table[table["what"].isin(PUBLISHED.values())]
    most_per_s = float(table["messages_per_s"].max())
    chart = Planes(
        CPU_TITLE,
        "Every point is a second of a valid trial; its area is the messages delivered in it."
        f" Dotted: where the study saw latency {_published_words(rows)}. Dashed, in a band: the"
        " bend of the nearest broken line with its 95% interval, if there is one; from blocks of"
        f" windows it is for these trials only.{ladder.left_out(page)}",
        layers=(
            ladder.points(s=None, alpha=0.65, zorder=2,
                          size="messages_per_s", size_norm=(0, max(most_per_s, 1.0)),
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
        empty=ladder.EMPTY,
    )  # fmt: skip
    return chart.draw(table, page)


def _planes(table: pd.DataFrame, page: Page) -> dict[str, Plane]:
    x = Axis(f"CPU use of {ladder.SERVICE}, % of a core", ends=(0, None))
    y = Axis("p90 per second, ms (log)", log=True)
    words = table[table["what"] == KNEE].set_index("treatment")["words"]
    shown = [*page.looks.items()][: ladder.MOST_PANELS]
    return {
        name: Plane(x, y, "\n".join(filter(None, (look.label, words.get(name, "")))))
        for name, look in shown
    }


def _published_words(rows: pd.DataFrame) -> str:
    pairs = zip(rows["what"], rows["cpu_percent"], strict=True)
    return " and ".join(f"{what} ({percent:g}%)" for what, percent in pairs)


DELIVERY_CPU = View(
    "delivery_cpu", CPU_TITLE, delivery_cpu_table, draw_delivery_cpu, ladder.of_crowds
)


VOLUME_TITLE = "delivery latency against message volume"
TARGET = "target"
VOLUME_COLUMNS = ["what", "treatment", "phase", "messages_per_s", "p90_ms"]


def delivery_volume_table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90, and the study's target for it."""
    shown = ladder.shown_windows(run, ["messages_per_s", "p90_ms"]).assign(what=ladder.WINDOW)
    if shown.empty:
        return pd.DataFrame(columns=VOLUME_COLUMNS)
    target = pd.DataFrame([{"what": TARGET, "p90_ms": targets_ms()["delivery_p90_ms"]}])
    return pd.concat([shown, target], ignore_index=True)[VOLUME_COLUMNS]


def _words(table: pd.DataFrame, page: Page) -> str:
    target_ms = table.loc[table["what"] == TARGET, "p90_ms"].iloc[0]
    return (
        "Every point is a second of a valid trial. Dashed: the study's target of"
        f" {target_ms:g} ms for the p90.{ladder.left_out(page)}"
    )


CHART = Planes(
    VOLUME_TITLE,
    _words,
    layers=(
        ladder.points(s=10, alpha=0.7),
        Rules((TARGET,), along="y"),
    ),
    planes=treatment_panels(
        Axis("messages delivered per second", ends=(0, None), whole=True),
        Axis("p90 per second, ms (log)", log=True),
        ladder.MOST_PANELS,
    ),
    x="messages_per_s",
    y="p90_ms",
    height_in=3.4,
    share_x=True,
    share_y=True,
    empty=ladder.EMPTY,
)
DELIVERY_VOLUME = View(
    "delivery_volume", VOLUME_TITLE, delivery_volume_table, CHART.draw, ladder.of_crowds
)


BURST_TITLE = "p90 of deliveries from CPU and bursts"
MEASURED, COMPUTED = "measured", "computed, nothing fitted"
ALONE = "0.9 B c, as if bursts never met"
P90, ERROR, MIDDLE = "p90", "error", "middle"
# An interval may reach this many times beyond the values.
BEYOND = 3.0
SHOWN = [
    "treatment", "no_overlap_ms", "model_ms", "measured_ms", "low", "high", "error_percent",
    "left_out",
]  # fmt: skip


def bursts_table(run: Run) -> pd.DataFrame:
    """Return the drawn columns of :func:`burst_model`."""
    return burst_model(run)[SHOWN]


def has_beats(run: Run) -> bool:
    """Return whether a run has rungs whose users act to a beat."""
    return "beat_s" in run.record.factors


def draw_bursts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw measured, computed and no-overlap p90 per treatment, and the error."""
    errors = table["error_percent"].astype(float).abs()
    widest = max(10.0, 1.15 * float(errors.fillna(0.0).max()))
    chart = RowChart(
        BURST_TITLE,
        "The k-th delivery of a burst waits k times the CPU of one;"
        f" {_error_words(errors.dropna())} Measured: while all users act, typical value over valid"
        " trials with its 95% interval (an arrow: it goes on).",
        layers=(
            Intervals((MEASURED,), at=0.15, beyond=BEYOND, among=(MEASURED,), size=9, lw=1.1,
                      label=MEASURED),
            Marks((COMPUTED,), "o", COMPUTED, color=PALETTE[0], hollow=True, at=-0.18),
            Marks((ALONE,), "x", ALONE, color=PALETTE[1], at=-0.18),
            Rules((MIDDLE,), ls="-"),
            Marks((ERROR,), "o", color=PALETTE[0]),
            Texts((ERROR,)),
        ),
        panels={
            P90: Axis("p90, ms (log)", log=True),
            ERROR: Axis("error, %", ends=(-widest, widest)),
        },
        row_in=0.3,
        widths=(2, 1),
    )  # fmt: skip
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each number of a treatment, with its panel."""
    treatments = table[["treatment"]]
    is_measured = np.isfinite(table["measured_ms"].astype(float))
    parts = [
        table[is_measured].assign(panel=P90, what=MEASURED, value=table["measured_ms"]),
        treatments.assign(panel=P90, what=COMPUTED, value=table["model_ms"])
        .where(is_measured)
        .dropna(),
        treatments.assign(panel=P90, what=ALONE, value=table["no_overlap_ms"])
        .where(is_measured)
        .dropna(),
        treatments.assign(
            panel=ERROR, what=ERROR, value=table["error_percent"], words=table["left_out"]
        ),
        pd.DataFrame([{"panel": ERROR, "what": MIDDLE, "value": 0.0, "treatment": ""}]),
    ]
    columns = ["panel", "what", "treatment", "value", "low", "high", "words"]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns).fillna({"words": ""})


def _error_words(errors: pd.Series[float]) -> str:
    if errors.empty:
        return "nothing can be computed of these rungs."
    return (
        f"error of {len(errors)} computed values: {errors.median():.0f}% in the middle,"
        f" {errors.max():.0f}% at most."
    )


BURSTS = View("bursts", BURST_TITLE, bursts_table, draw_bursts, suits=has_beats)
