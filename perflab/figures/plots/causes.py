"""Why two sides differ: what of a request's account makes the difference, entry by entry."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import pandas as pd

from perflab.analysis.accounts.cause_texts import entry_name
from perflab.analysis.accounts.causes import Causes, causes_of
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, RowChart, Rules
from perflab.figures.origin import Page
from perflab.figures.theme import tick_label
from perflab.figures.view import ARROW, View
from perflab.recordings import Run
from perflab.recordings.causes import ALONE, part_of
from perflab.statistics.in_words import number

TITLE = "why they differ: the account of a request"
# Room beside the longest interval, as a share of the range.
MARGIN = 0.06
CAUSE_COLUMNS = ["what", "entry", "treatment", "against", "old", "new", "change", "low", "high"]
ENTRY, EQUAL, RESPONSE = "entry", "equal", ("response", "")
# Entries that change by a smaller share of the largest change are left out; so are more than these.
LEAST_SHARE, MOST_ENTRIES = 0.02, 8
MOST_PAIRS, PANELS_IN = 3, 4.8
LONGEST = 64


def causes_table(run: Run) -> pd.DataFrame:
    """Return the entries of the accounts of each compared pair, in ms of a request.

    The first is the response time; the others, the largest change first, add up to it but for the
    small ones, which are left out.
    """
    pairs = ((sides, causes_of(run, *sides)) for sides in run.record.compared_pairs())
    rows = [row for sides, causes in pairs if causes for row in _rows(causes, *sides)]
    return pd.DataFrame(rows, columns=CAUSE_COLUMNS)


def _rows(causes: Causes, new: str, old: str) -> Iterator[dict[str, Any]]:
    entries = sorted(causes.times.items(), key=lambda each: -abs(each[1].change))[:MOST_ENTRIES]
    largest = max((abs(one.change) for _, one in entries), default=0.0)
    shown = [each for each in entries if abs(each[1].change) >= LEAST_SHARE * largest]
    for key, one in [(RESPONSE, causes.response), *shown]:
        name = entry_name(key)
        yield {
            "what": ENTRY, "entry": name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…",
            "treatment": new, "against": old, "old": one.old, "new": one.new,
            "change": one.change, "low": one.low, "high": one.high,
        }  # fmt: skip


def draw_causes(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw the change of each entry with its interval; the words beside it are both sides' ms."""
    # Parts may be more than the whole, and no point leaves the picture.
    most = 1.5 * table["change"].abs().max()
    within = (-most, most)
    # A treatment may stand against several others: each pair has a panel.
    every = [*dict.fromkeys(zip(table["treatment"], table["against"], strict=True))]
    pairs = every[:MOST_PAIRS]
    part = f" The first {len(pairs)} of {len(every)} pairs; the table has all."
    table = table.assign(pair=[*map(_pair, table["treatment"], table["against"])])
    words = {name: style.label for name, style in page.styles.items()}
    wide_in = PANELS_IN / len(pairs)
    table = table[table["pair"].isin([_pair(*pair) for pair in pairs])]
    # All panels have the same range, so that lengths compare.
    reach = table[["low", "change", "high"]].clip(*within)
    low, high = min(0.0, float(reach.min().min())), max(0.0, float(reach.max().max()))
    ends = (low - MARGIN * (high - low), high + MARGIN * (high - low))
    panels = {
        _pair(new, old): Axis(
            tick_label(f"{words[new]} against {words[old]}, ms", wide_in), ends=ends
        )
        for new, old in pairs
    }
    chart = RowChart(
        TITLE,
        "What changes in a request, in ms, of one user whose requests come one at a time: mean over"
        f" blocks with its 95% interval{', and both sides at the right' * (len(pairs) == 1)}. Below"
        f" the response time stand its parts, the largest change first. {ARROW}"
        f"{part * (len(every) > len(pairs))}",
        layers=(
            Rules((EQUAL,), ls="-"),
            Intervals((ENTRY,), by="treatment", within=within, size=4.5, lw=1.3, keyed=False),
        ),
        panels=panels,
        panel="pair",
        row="entry",
        value="change",
        labels=_labels,
        row_in=0.24,
        said=_sides,
    )
    equal = pd.DataFrame([{"what": EQUAL, "change": 0.0, "pair": pair} for pair in panels])
    return chart.draw(pd.concat([table, equal], ignore_index=True), page)


def _pair(new: str, old: str) -> str:
    return f"{new} against {old}"


def _labels(table: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    return {name: name for name in table["entry"].dropna().unique()}


def _sides(table: pd.DataFrame) -> dict[Hashable, str]:
    """Return the ms of both sides, if there is one pair."""
    rows = table.dropna(subset=["entry"])
    if rows["pair"].nunique() != 1:
        return {}
    return {
        row["entry"]: f"{number(row['old'])} → {number(row['new'])} ms"
        for row in rows.to_dict("records")
    }


CAUSES = View(
    "why", TITLE, causes_table, draw_causes, suits=lambda run: part_of(run, ALONE) is not None
)
