"""Where a request's time goes, from the phases that the service reports in Server-Timing."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from perflab.figures.canvas import WIDTH_IN, canvas_of, finish, only_grid
from perflab.figures.evidence import parts
from perflab.figures.looks import looks
from perflab.figures.plots import rows
from perflab.figures.theme import INK, MUTED, styled
from perflab.figures.words import text_width_in
from perflab.recordings import Run

# Paul Tol's muted scheme: apart from the treatments' colours, and safe for colour-blind readers.
COLORS = {
    "generator lag": "#E3E3E3",
    "connection wait": "#C4C4C4",
    "queue and other": "#8F8F8F",
    "threadpool": "#DDCC77",
    "inference": "#44AA99",
    "pool": "#88CCEE",
    "execute": "#5566AA",
    "commit": "#882255",
    "unaccounted app": "#999933",
}
MEANINGS = {
    "threadpool": "thread-pool wait",
    "pool": "connection-pool wait",
    "execute": "execute statement",
    "queue and other": "accept queue, network, server",
    "unaccounted app": "rest of the application",
}
SPARE = ("#CC6677", "#117733", "#AA4499", "#332288")
REST = "unaccounted app"
BAR = 0.62


def table(run: Run) -> pd.DataFrame:
    """Return the mean time of every part of a request, in ms, by treatment (long form)."""
    labels = {name: look.label for name, look in looks(run.record).items()}
    found = parts(run)
    order = _order(found["part"])
    found = found.assign(
        label=found["treatment"].map(labels),
        treatment=pd.Categorical(found["treatment"], list(labels)),
        part=pd.Categorical(found["part"], order),
    ).sort_values(["treatment", "part"], ignore_index=True)
    found = found.astype({"treatment": str, "part": str})
    return found[["treatment", "label", "part", "mean_ms"]]


def _order(names: Iterable[str]) -> list[str]:
    """Return the parts in the order in which a request meets them; unknown phases before the rest.

    ``REST`` has no place in time: it is what the known phases leave.
    """
    named = [str(name) for name in dict.fromkeys(names)]
    unknown = [name for name in named if name not in COLORS]
    return [*(name for name in COLORS if name in named and name != REST), *unknown, REST]


@styled
def time_breakdown(run: Run) -> Figure:
    """Draw the mean parts of a response time as one stacked bar per treatment."""
    look = looks(run.record)
    drawn = table(run)
    colors = _colors(drawn)
    figure = canvas_of(
        run,
        "where the time goes: mean parts of a response time",
        plot_height_in=0.6 + len(look) * rows.height_in(look, 0.44),
        subtitle="Valid trials, successful responses. Phases from the service's Server-Timing;"
        " grey: seen from outside. Number at the bar's end: mean response time.",
        key=[Patch(fc=color, label=MEANINGS.get(part, part)) for part, color in colors.items()],
    )
    axes = figure.subplots()
    places = rows.frame(axes, look)
    totals = drawn.groupby("treatment")["mean_ms"].sum()
    limit = float(totals.max()) * 1.14 if len(totals) else 1.0
    axes.set_xlim(0, limit if limit > 0 else 1.0)
    for name, place in places.items():
        if name in totals:
            _draw_bar(axes, place, drawn[drawn["treatment"] == name], colors)
        else:
            axes.text(
                0.01,
                place,
                "no valid trial",
                transform=axes.get_yaxis_transform(),
                va="center",
                color=MUTED,
            )
    axes.set_xlabel("mean time, ms")
    only_grid(axes, "x")
    return finish(figure)


def _colors(drawn: pd.DataFrame) -> dict[str, str]:
    """Return the colours of the parts that occur, in the order of the stack."""
    spare = iter(SPARE * 4)
    shown = drawn.loc[drawn["mean_ms"] > 0, "part"]
    return {part: COLORS.get(part) or next(spare) for part in _order(shown) if part in set(shown)}


def _draw_bar(axes: Axes, place: int, segments: pd.DataFrame, colors: dict[str, str]) -> None:
    left = 0.0
    # The axes take roughly this part of the figure; labels need it before the layout is known.
    inch = axes.get_xlim()[1] / (WIDTH_IN - rows.LABEL_WIDTH_IN - 0.6)
    for part, value in zip(segments["part"], segments["mean_ms"], strict=True):
        if value <= 0:
            continue
        color = colors[part]
        axes.barh(place, value, left=left, height=BAR, color=color, edgecolor="white", lw=0.8)
        words = _short(value)
        if value > (text_width_in(words, 7.5) + 0.04) * inch:
            axes.text(
                left + value / 2,
                place,
                words,
                size=7.5,
                ha="center",
                va="center",
                color="white" if _dark(color) else INK,
            )
        left += value
    total = f"{_total(float(segments['mean_ms'].sum()))} ms"
    axes.text(left + 0.06 * inch, place, total, size=8, va="center", weight="bold")


def _short(value: float) -> str:
    """Return two digits, to fit into a bar; the table has more."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def _total(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}"


def _dark(color: str) -> bool:
    red, green, blue = to_rgb(color)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
