"""Where a request's time goes, from the phases that the service reports in Server-Timing."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from perflab.analysis.trials.decomposition import part_words
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.evidence import parts, whole_responses
from perflab.figures.intervals import draw_interval
from perflab.figures.looks import looks_of, luminance
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.plots.published_marks import (
    PUBLISHED,
    Published,
    draw_published,
    nothing_published,
    published_key,
)
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import View
from perflab.figures.words import text_width_in
from perflab.recordings import Run

# Apart from the treatments' colours, safe for colour-blind readers, and each of another lightness:
# parts that can lie side by side stay apart in greyscale.
COLORS = {
    "generator lag": "#F0F0F0",
    "connection wait": "#AEAEAE",
    "queue and other": "#7F7F7F",
    "request": "#101840",
    "threadpool": "#F0DD88",
    "inference": "#117766",
    "pool": "#99CCEE",
    "execute": "#5566CC",
    "commit": "#661144",
    "release": "#DC668A",
    "answer": "#74380F",
    "unaccounted app": "#AAA055",
}
SPARE = ("#333388", "#EE99AA", "#A03030", "#CCEECC")
TITLE = "where the time goes, mean parts of a response time"
WHOLE = "whole response"
COLUMNS = ["treatment", "part", "mean_ms", "low_ms", "high_ms", "trials", "state"]
REST = "unaccounted app"
BAR = 0.62
TOTAL_IN = 1.45


def time_breakdown_table(run: Run, published: Published = nothing_published) -> pd.DataFrame:
    """Return the mean time of every part of a request, in ms, by treatment (long form).

    After the parts comes the whole response time, with its 95% t interval over the trials, low_ms
    to high_ms, and their number; then what was published of it, where something was, with the load
    as ``state``.
    """
    found, whole = parts(run), whole_responses(run).assign(part=WHOLE)
    order = [*_order(found["part"]), WHOLE, PUBLISHED]
    named = {"value": "mean_ms", "load": "state"}
    absolutes = published(run, "mean_ms").rename(columns=named).assign(part=PUBLISHED)
    absolutes = absolutes[absolutes["treatment"].isin(whole["treatment"])]
    shown = [found[["treatment", "part", "mean_ms"]], whole, absolutes]
    joined = pd.concat([each for each in shown if len(each)] or shown, ignore_index=True)
    sorted_as = {"treatment": list(looks_of(run.record)), "part": order}
    return joined.sort_values(
        ["treatment", "part"], key=lambda names: names.map(sorted_as[str(names.name)].index)
    ).reindex(columns=COLUMNS)


def _order(names: Iterable[str]) -> list[str]:
    """Return the parts in the order in which a request meets them; unknown phases before the rest.

    ``REST`` has no place in time: it is what the known phases leave.
    """
    named = [str(name) for name in dict.fromkeys(names)]
    unknown = [name for name in named if name not in COLORS]
    return [*(name for name in COLORS if name in named and name != REST), *unknown, REST]


def draw_time_breakdown(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the mean parts of a response time as one stacked bar per treatment."""
    drawn = table[~table["part"].isin([WHOLE, PUBLISHED])]
    published = table[table["part"] == PUBLISHED]
    colors = _colors(drawn)
    totals = {
        str(row["treatment"]): row for row in table[table["part"] == WHOLE].to_dict("records")
    }
    said = {name: _ends(total) for name, total in totals.items()}
    own = rows.of_looks(page.looks, page.sheet, 0.44, said)
    where = own.either(beside="At the bar's end", above="Above the bar")
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.6 + own.height_in,
        subtitle="Valid trials, successful responses. Phases from the service's Server-Timing;"
        f" grey: seen from outside. {where}: mean response time with its 95% interval over"
        " trials (t), drawn where it lies (an arrow: it goes on).",
        key=[
            *(Patch(fc=color, label=part_words(part)) for part, color in colors.items()),
            *published_key(published),
        ],
    )
    axes = figure.subplots()
    places = own.frame(axes)
    _make_room(
        axes, own, [float(each["mean_ms"]) for each in totals.values()], published["mean_ms"]
    )
    below = {name: place + BAR / 2 + 0.1 for name, place in places.items()}
    draw_published(axes, published, "mean_ms", below)
    for name, place in places.items():
        if name in totals:
            inch = axes.get_xlim()[1] / own.plot_in
            _draw_bar(axes, place, drawn[drawn["treatment"] == name], colors, inch)
            _draw_total(axes, place, totals[name])
            own.say(axes, name, float(totals[name]["mean_ms"]) + 0.06 * inch, place, size=7.5,
                    linespacing=1.25)  # fmt: skip
        else:
            _say_nothing(axes, place)
    axes.set_xlabel("mean time, ms")
    only_grid(axes, "x")
    return finish(figure)


def _say_nothing(axes: Axes, place: float) -> None:
    axes.text(
        0.01,
        place,
        "no valid trial",
        transform=axes.get_yaxis_transform(),
        va="center",
        color=MUTED,
    )


def _make_room(axes: Axes, own: rows.Rows[str], totals: list[float], published: pd.Series) -> None:
    """Leave room at the right of the longest bar for its numbers, and for what was published."""
    furthest = float(published.max()) * 1.02 if len(published) else 0.0
    room_in = own.plot_in - own.room_in(TOTAL_IN)
    axes.set_xlim(0, np.fmax(max(totals) * own.plot_in / room_in, furthest))


def _colors(drawn: pd.DataFrame) -> dict[str, str]:
    """Return the colours of the parts that occur, in the order of the stack."""
    spare = iter(SPARE * 4)
    shown = drawn.loc[drawn["mean_ms"] > 0, "part"]
    return {part: COLORS.get(part) or next(spare) for part in _order(shown) if part in set(shown)}


def _draw_bar(
    axes: Axes, place: float, segments: pd.DataFrame, colors: dict[str, str], inch: float
) -> None:
    left = 0.0
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
                color="white" if luminance(color) < 0.55 else INK,
            )
        left += value


def _draw_total(axes: Axes, place: float, total: Mapping[Hashable, Any]) -> None:
    """Draw the interval of a bar's end just above the bar."""
    mean, low, high = (float(total[name]) for name in ("mean_ms", "low_ms", "high_ms"))
    last, above = axes.get_xlim()[1], place - BAR / 2 - 0.08
    if math.isfinite(low):
        draw_interval(axes, (low, high), above, (0.0, last), color=INK, lw=1.6, zorder=4,
                      gid="interval")  # fmt: skip
        axes.plot([mean], [above], marker="|", ms=6, mew=1.6, color=INK, zorder=4)


def _ends(total: Mapping[Hashable, Any]) -> str:
    """Return mean, interval and n of a whole response."""
    mean, low, high = (float(total[name]) for name in ("mean_ms", "low_ms", "high_ms"))
    n = int(total["trials"])
    ends = f"\nn = {n}, no interval"
    if math.isfinite(low):
        ends = f" [{_total(low)}, {_total(high)}]\nn = {n} trials"
    return f"{_total(mean)} ms{ends}"


def _short(value: float) -> str:
    """Return two digits, to fit into a bar; the table has more."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def _total(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}"


def time_breakdown_view(published: Published = nothing_published) -> View:
    """Return the view, with what a system has published absolutes of."""
    table = partial(time_breakdown_table, published=published)
    return View("time_breakdown", TITLE, table, draw_time_breakdown)


TIME_BREAKDOWN = time_breakdown_view()
