"""The mean parts of a response time: the phases that the service reports in Server-Timing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import pandas as pd

from perflab.analysis.time_parts import decompose, part_words
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, RowChart, Stack
from perflab.figures.origin import Page, in_words, typical_rows
from perflab.figures.theme import styles_of
from perflab.figures.view import PUBLISHED, View
from perflab.recordings import Run

# Of many parts so many are drawn, and the others together.
MOST_PARTS, OTHERS, OF_OTHERS = 6, "all other parts", "#DDDDDD"
# They differ from the treatments' colours, are safe for colour-blind readers, and differ in
# lightness, so that neighbouring parts stay apart in greyscale.
COLORS = {
    "generator lag": "#F0F0F0",
    "connection wait": "#AEAEAE",
    "queue and other": "#7F7F7F",
    "unaccounted app": "#AAA055",
}
OF_PHASES = (
    "#101840", "#F0DD88", "#117766", "#99CCEE", "#5566CC", "#661144", "#DC668A", "#74380F",
    "#EE99AA", "#333388", "#CCEECC", "#A03030",
)  # fmt: skip
BREAKDOWN_TITLE = "where the time goes, mean parts of a response time"
WHOLE_RESPONSE = "whole response"
BREAKDOWN_COLUMNS = ["treatment", "part", "mean_ms", "low_ms", "high_ms", "trials"]
OF_WHOLE = {"value": "mean_ms", "low": "low_ms", "high": "high_ms", "n": "trials"}
REST = "unaccounted app"
BAR = 0.62


def time_breakdown_table(run: Run) -> pd.DataFrame:
    """Return the mean time of every part of a request, in ms, by treatment (long form).

    The parts add up to the whole, which comes after them: the response time as summaries have it,
    with its 95% interval over trials, low_ms to high_ms, and their number.
    """
    requests = run.requests()
    whole = typical_rows(run, "mean_ms").rename(columns=OF_WHOLE).assign(part=WHOLE_RESPONSE)
    if requests.empty:  # a bar without parts would look like one that was not divided
        whole = whole.iloc[:0]
    parts = of_whole(decompose(requests), whole)
    order = [*_order(parts["part"]), WHOLE_RESPONSE]
    shown = [parts[["treatment", "part", "mean_ms"]], whole]
    joined = pd.concat([part for part in shown if len(part)] or shown, ignore_index=True)
    sorted_as = {"treatment": list(styles_of(run.record)), "part": order}
    return joined.sort_values(
        ["treatment", "part"], key=lambda names: names.map(sorted_as[str(names.name)].index)
    ).reindex(columns=BREAKDOWN_COLUMNS)


def of_whole(parts: pd.DataFrame, whole: pd.DataFrame) -> pd.DataFrame:
    """Return mean parts so that they add up to the whole that summaries have, where they have one.

    Parts have a mean of their own for each, and means of trials with long tails lie far from what
    is typical of the trials: the figure would show two response times of one treatment.
    """
    typical = parts["treatment"].map(whole.set_index("treatment")["mean_ms"])
    sums = parts.groupby("treatment")["mean_ms"].transform("sum")
    scaled = parts["mean_ms"] * typical / sums
    return parts.assign(mean_ms=scaled.fillna(parts["mean_ms"]))


def _order(names: Iterable[str]) -> list[str]:
    """Return the parts in the order of a request: first what is seen from outside.

    ``REST`` is last because it has no place in time: it is what the phases leave.
    """
    parts = [str(name) for name in dict.fromkeys(names)]
    phases = [name for name in parts if name not in COLORS]
    return [*(name for name in COLORS if name in parts and name != REST), *phases, REST]


def draw_time_breakdown(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the mean parts of a response time as one stacked bar per treatment."""
    # Tables of older runs of the reference have published means, too.
    table = _with_few_parts(table[table["part"] != PUBLISHED])
    is_part = table["part"] != WHOLE_RESPONSE
    colors = _colors(table[is_part])
    longest = float(table.loc[table["part"] == WHOLE_RESPONSE, "mean_ms"].max())
    furthest = float(np.nanmax(table["mean_ms"])) * 1.08
    chart = RowChart(
        BREAKDOWN_TITLE,
        "Valid trials, successful responses. Phases from the service's Server-Timing; grey: seen"
        " from outside. In numbers: mean response time with its 95% interval over trials, drawn"
        " where it lies (an arrow: it goes on).",
        layers=(
            Stack(colors, labels={part: part_words(part) for part in colors},
                  words=_short, height=BAR),
            Intervals((WHOLE_RESPONSE,), "low_ms", "high_ms", at=-BAR / 2 - 0.08,
                      within=(0.0, max(furthest, 1.2 * longest)), size=6),
        ),
        panels={"": Axis("mean time, ms", ends=(0.0, max(furthest, 1.2 * longest)))},
        value="mean_ms",
        row_in=0.44,
        said=_words_beside,
        nothing="no valid trial",
    )  # fmt: skip
    return chart.draw(table.assign(what=table["part"].where(~is_part, "part")), page)


def _with_few_parts(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its largest parts, and the sum of the others as one part."""
    is_part = table["part"] != WHOLE_RESPONSE
    largest = table[is_part].groupby("part")["mean_ms"].max().nlargest(MOST_PARTS)
    others = table[is_part & ~table["part"].isin(largest.index)]
    if others["part"].nunique() < 2:
        return table
    sums = others.groupby("treatment", sort=False, as_index=False)["mean_ms"].sum()
    few: pd.DataFrame = pd.concat(
        [table.drop(others.index), sums.assign(part=OTHERS)], ignore_index=True
    )
    return few


def _colors(drawn: pd.DataFrame) -> dict[str, str]:
    """Return the colours of the parts that occur, in the order of the stack."""
    spare = iter(OF_PHASES * 2)
    shown = drawn.loc[(drawn["mean_ms"] > 0) & (drawn["part"] != OTHERS), "part"]
    colors = {part: COLORS.get(part) or next(spare) for part in _order(shown) if part in set(shown)}
    return colors | ({OTHERS: OF_OTHERS} if OTHERS in set(drawn["part"]) else {})


def _words_beside(table: pd.DataFrame) -> dict[Hashable, str]:
    names = {ours: theirs for theirs, ours in OF_WHOLE.items()}
    totals = table[table["part"] == WHOLE_RESPONSE].rename(columns=names).to_dict("records")
    return {total["treatment"]: in_words(total, "ms") for total in totals}


def _short(value: float) -> str:
    """Return a number of few digits that fits into a bar."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


TIME_BREAKDOWN = View("time_breakdown", BREAKDOWN_TITLE, time_breakdown_table, draw_time_breakdown)
