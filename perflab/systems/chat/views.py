"""The views of the chat service's runs; latency against CPU and volume, and logins, are here."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import evaluate
from perflab.figures import EFFECT, PROFILE
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Plane, Planes, Points, Rules
from perflab.figures.charts.layers import marker
from perflab.figures.origin import Page
from perflab.figures.theme import FAINT, INK, MUTED, PALETTE, Style
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.statistics.in_words import capitalized, number
from perflab.statistics.knees import knee
from perflab.systems.chat.codec_costs import CODEC_COST
from perflab.systems.chat.ladder import LADDER, PINGED, targets_ms
from perflab.systems.chat.rungs import COSTLY, FREE
from perflab.systems.chat.users_held import USERS_HELD
from perflab.systems.chat.windows import (
    EMPTY,
    MOST_PANELS,
    PHASE_STYLES,
    SERVICE,
    STREAM_TIMELINE,
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
VOLUME_TITLE = "delivery latency against message volume"
TARGET = "target"
VOLUME_COLUMNS = ["what", "treatment", "phase", "messages_per_s", "p90_ms"]
VOLUME = Axis("messages delivered per second", ends=(0, None), whole=True)
LATENCY = Axis("p90 per second, ms (log)", log=True)
LOGIN_TITLE = "two bands: CPU with logins under way, and without"
AGAINST = {"users": "connected users", "messages_per_s": "messages delivered per second"}
JOIN_CPU = "join_cpu_share_"
LOGIN_COLUMNS = ["band", *AGAINST, "cpu_percent", "words"]
LOGIN_STYLES = {
    "joining, costly logins": Style(PALETTE[1], "^", "joining, costly logins"),
    "all joined, costly logins": Style(PALETTE[4], "v", "all joined, costly logins"),
    "joining, free logins": Style(PALETTE[0], "o", "joining, free logins"),
    "all joined, free logins": Style(PALETTE[6], "s", "all joined, free logins"),
}


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
    words = f"{fit.words()} (n = {fit.unit})" if fit.unit else fit.words()
    shares = (fit.cpu, fit.low, fit.high) if fit.supported else (math.nan,) * 3
    middle, low, high = (100 * share for share in shares)
    return {
        "what": KNEE, "treatment": treatment, "cpu_percent": middle, "low": low, "high": high,
        "words": words,
    }  # fmt: skip


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
    y = Axis("p90 per second, ms (log)", log=True)
    words = table[table["what"] == KNEE].set_index("treatment")["words"]
    shown = [*page.styles.items()][:MOST_PANELS]
    return {
        name: Plane(x, y, "\n".join(filter(None, (style.label, words.get(name, "")))))
        for name, style in shown
    }


DELIVERY_CPU = View("delivery_cpu", CPU_TITLE, delivery_cpu_table, draw_delivery_cpu, of_crowds)


def delivery_volume_table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90, and the study's target for it."""
    shown = shown_windows(run, ["messages_per_s", "p90_ms"]).assign(what=WINDOW)
    if shown.empty:
        return pd.DataFrame(columns=VOLUME_COLUMNS)
    target = pd.DataFrame([{"what": TARGET, "p90_ms": targets_ms()["delivery_p90_ms"]}])
    return pd.concat([shown, target], ignore_index=True)[VOLUME_COLUMNS]


def _words(table: pd.DataFrame, page: Page) -> str:
    target_ms = table.loc[table["what"] == TARGET, "p90_ms"].iloc[0]
    return (
        "Every point is a second of a valid trial. Dashed: the study's target of"
        f" {target_ms:g} ms for the p90.{left_out(page)}"
    )


CHART = Planes(
    VOLUME_TITLE,
    _words,
    layers=(
        Points((WINDOW,), "phase", PHASE_STYLES, how={"s": 10, "alpha": 0.7}),
        Rules((TARGET,), along="y"),
    ),
    planes=lambda _, page: {
        name: Plane(VOLUME, LATENCY, style.label)
        for name, style in [*page.styles.items()][:MOST_PANELS]
    },
    x="messages_per_s",
    y="p90_ms",
    height_in=3.4,
    share_x=True,
    share_y=True,
    empty=EMPTY,
)
DELIVERY_VOLUME = View(
    "delivery_volume", VOLUME_TITLE, delivery_volume_table, CHART.draw, of_crowds
)


def cost_of_logins(run: Run) -> str:
    """Say how much more CPU costly logins take while users join, by the claim about it."""
    claims = (each for each in evaluate(run) if each.contrast.response.startswith(JOIN_CPU))
    finding = next(claims, None)
    if finding is None or finding.effect is None:
        return "costly logins have nothing to compare with while users join"
    words = f"{effect_text(finding)} of CPU (n = {finding.effect.n_words})"
    return f"while users join, costly logins take {words}"


def login_bands_table(run: Run) -> pd.DataFrame:
    """Return the windows with a CPU share by band, after a row that states the cost of logins."""
    seconds = windows(run)
    shown = seconds[["treatment", "joining", *AGAINST, "cpu"]].dropna()
    if shown.empty:
        return pd.DataFrame(columns=LOGIN_COLUMNS)
    costly, free = (treatment.name for treatment in run.record.treatments[:2])
    logins = shown["treatment"].map({costly: "costly logins", free: "free logins"})
    joining = np.where(shown["joining"], "joining, ", "all joined, ")
    rows = shown.assign(band=joining + logins, cpu_percent=100 * shown["cpu"])
    sentence = pd.DataFrame([{"words": cost_of_logins(run)}])
    return pd.concat([sentence, rows], ignore_index=True)[LOGIN_COLUMNS]


def compares_logins(run: Run) -> bool:
    """Return whether the first two treatments of a run are costly and free logins."""
    return [item.levels.get("rung") for item in run.record.treatments[:2]] == [COSTLY, FREE]


def draw_login_bands(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw both bands against users and against volume."""
    published = published_value("chat", "figure 3", "login band above the other", "cpu_difference")
    cpu = Axis(f"CPU use of {SERVICE}, % of a core", ends=(0, None))
    axes = {name: Axis(words, ends=(0, None), whole=True) for name, words in AGAINST.items()}
    chart = Planes(
        LOGIN_TITLE,
        f"Every point is a second of a valid trial. {capitalized(''.join(table['words']))};"
        f" published: about {published:g} points, {number(published / 100)} cores.",
        layers=(Points((), "band", LOGIN_STYLES, how={"s": 10, "alpha": 0.7}),),
        planes={name: Plane(x, cpu) for name, x in axes.items()},
        panel="against",
        x="x",
        y="cpu_percent",
        height_in=3.5,
        share_y=True,
    )
    rows = table[table["band"] != ""].melt(["band", "cpu_percent"], [*AGAINST], "against", "x")
    return chart.draw(rows.astype({"x": float}), page)


LOGIN_BANDS = View(
    "login_bands", LOGIN_TITLE, login_bands_table, draw_login_bands, suits=compares_logins
)

VIEWS = (
    EFFECT, CODEC_COST, LADDER, PINGED, USERS_HELD, DELIVERY_CPU,
    STREAM_TIMELINE, LOGIN_BANDS, DELIVERY_VOLUME, PROFILE,
)  # fmt: skip
