"""Captions and alternative texts of figures, written from the tables that the figures are drawn of.

What a reader who cannot see the figure must know: what is drawn, the numbers with interval and n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from perflab.numerals import MISSING, at_least, at_most, counted, missing, number

MOST = 6
MOST_ALT = 3
LABEL = "treatment"
# Curves of single trials stand beside those over all of them.
TRIAL_ID = r"b\d+-p\d+-a\d+"
COUNTS = ("n", "trials")
# A value that was cut off before its end is none: only a bound is known.
AT_MOST, AT_LEAST = "at most", "at least"
BOUNDS_NOTE = " At most, at least: what was cut off before its end has only a bound."
# Ends of intervals, and what they are about where the column of the value has no such name.
VALUES = (
    "value",
    "estimate",
    "measured",
    "mean_ms",
    "median",
    "share",
    "points",
    "ratio",
    "ms",
    "us",
)
UNITS = {
    "rps": "requests/s", "ms": "ms", "us": "us", "s": "s", "bytes": "bytes", "cores": "cores",
    "percent": "%",
}  # fmt: skip
# Places and states tell where something is drawn, not what was measured.
PLACES = ("block", "order", "place", "t_s", "begin_s", "share_done", "users", "rate", "n", "trials")


@dataclass(frozen=True)
class Words:
    """A figure in words: the caption below it, and the text that stands in its place."""

    caption: str
    alt: str


def words_of(title: str, table: pd.DataFrame, labels: Mapping[str, str], n: str, why: str) -> Words:
    """Return caption and alternative text of a figure.

    Parameters
    ----------
    title : str
        What it shows, in a few words.
    table : DataFrame
        What it is drawn from.
    labels : mapping
        Names of treatments to their labels.
    n : str
        How many trials there are, for figures whose table does not say it.
    why : str
        Why there may be nothing to show.
    """
    head = f"{title[:1].upper()}{title[1:]}."
    if table.empty:
        return Words(f"{head} {why}", f"{head} {why}")
    told = list(statements(table, labels))
    short = "; ".join(told[:MOST_ALT]) + ("; more in the caption" if len(told) > MOST_ALT else "")
    text = "; ".join(told[:MOST])
    if len(told) > MOST:
        text += f"; and {len(told) - MOST} more in the table"
    interval = " In brackets: 95% intervals." if " [" in text else ""
    interval += BOUNDS_NOTE if has_bounds(table) else ""
    counts = "" if " n = " in text else f" {n}."
    return Words(" ".join(f"{head} {text}.{interval}{counts}".split()), f"{head} {short}.")


def statements(table: pd.DataFrame, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield what a table says, a statement for each line, group or claim."""
    named = table.assign(**{LABEL: _labelled(table, labels)}) if LABEL in table else table
    if "claim" in table and "verdict" in table:
        yield from map(_claim, named.to_dict("records"))
        return
    if "words" in table:
        yield from _in_words(named)
    estimates = list(_estimates(named))
    yield from estimates
    if not estimates and "words" not in table:
        yield from _groups(named)


def has_bounds(table: pd.DataFrame) -> bool:
    """Say whether something in a table is known only to be so much at most, or at least."""
    if "what" in table and table["what"].astype(str).str.endswith((AT_MOST, AT_LEAST)).any():
        return True
    ends = _ends(table)
    return ends is not None and bool(_is_bound(table, *ends).any())


def _is_bound(table: pd.DataFrame, value: str, low: str, high: str) -> pd.Series[bool]:
    """Say which rows have no value, but one end of its interval."""
    ends = table[[low, high]].apply(pd.to_numeric, errors="coerce")
    sides = [bool(_one_sided(*each)) for each in ends.itertuples(index=False, name=None)]
    return table[value].isna() & pd.Series(sides, index=table.index, dtype=bool)


def _labelled(table: pd.DataFrame, labels: Mapping[str, str]) -> list[str]:
    return [labels.get(str(name), str(name)) for name in table[LABEL]]


def _claim(row: Mapping[Any, Any]) -> str:
    value = row.get("measured", row.get("share", math.nan))
    kind = " of ".join(str(row[name]) for name in ("scale", "quantity") if row.get(name))
    parts = [f"{kind or 'measured'} {_measured(value, row.get('low'), row.get('high'))}"]
    if not missing(row.get("published")) and str(row["published"]):
        published = row["published"]
        parts.append(f"published {published if isinstance(published, str) else number(published)}")
    blocks = row.get("n", len(str(row.get("of_blocks", "")).split()))
    told = f"{row['claim']}: {', '.join(parts)}, n = {int(blocks)}"
    return f"{told} ({row['verdict']})"


def _in_words(table: pd.DataFrame) -> Iterator[str]:
    for row in table.to_dict("records"):
        if text := " ".join(str(row["words"]).split()):
            yield " ".join(filter(None, [_who(row, skip=("words",)), text]))


def _ends(table: pd.DataFrame) -> tuple[str, str, str] | None:
    """Return the columns of value, lower and upper end; None where there are no intervals."""
    for low in ("low", "low_ms"):
        high = low.replace("low", "high")
        if low not in table or high not in table:
            continue
        before = list(map(str, table.columns[: table.columns.get_loc(low)]))
        numeric = [name for name in before if _is_measured(table, name)]
        known = [name for name in numeric if name in VALUES]
        if chosen := known[-1:] or numeric[-1:]:
            return chosen[0], low, high
    return None


def _is_measured(table: pd.DataFrame, name: str) -> bool:
    return bool(pd.api.types.is_numeric_dtype(table[name])) and name not in PLACES


def _estimates(table: pd.DataFrame) -> Iterator[str]:
    """Yield the rows with an interval; a course over time has none that stands for it."""
    ends = _ends(table)
    if ends is None or "t_s" in table:
        return
    value, low, high = ends
    known = table[value].notna() & table[low].notna()
    for row in table[known | _is_bound(table, value, low, high)].to_dict("records"):
        unit = _unit(value, str(row.get("unit", "")))
        n = next((f", n = {int(row[name])}" for name in COUNTS if not missing(row.get(name))), "")
        yield f"{_who(row)}: {_measured(row[value], row[low], row[high])}{unit}{n}"


def _groups(table: pd.DataFrame) -> Iterator[str]:
    """Yield a group's median and range where single values are drawn."""
    if "share_done" in table:
        near = (table["share_done"] - 0.5).abs()
        table = table[near == near.min()]
        of_trials = table["curve"].str.fullmatch(TRIAL_ID) if "curve" in table else near < 0
        table = table[of_trials] if of_trials.any() else table
    measured = [name for name in map(str, table.columns) if _is_measured(table, name)]
    texts = [each for each in (LABEL, "service", "what", "panel", "state") if each in table]
    if not measured or not texts:
        yield f"{counted(len(table), 'row')} in the table beside it"
        return
    column = "median" if "median" in measured else measured[-1]
    for names, own in table.groupby(texts, sort=False):
        values = own[column].dropna().astype(float)
        if len(values):
            who = ", ".join(filter(None, map(str, names)))
            half = f" ({_noun(column)} at half of the responses)" if "share_done" in table else ""
            bound = _side(dict(zip(texts, names, strict=True)).get("what"))
            yield f"{who}{half}: {_spread(values, bound, _unit(column))}"


def _side(what: Any) -> str:
    """Return on which side values named so are bounds; empty where they are values."""
    return next((side for side in (AT_MOST, AT_LEAST) if str(what).endswith(side)), "")


def _spread(values: pd.Series[float], bound: str, unit: str) -> str:
    """Return median and range of values; of bounds the median is one, and there is no range."""
    many = counted(len(values), "value")
    if bound:
        return f"median {_bound(values.median(), bound)}{unit}, {many} cut off"
    return (
        f"median {number(values.median())}{unit}, "
        f"{number(values.min())} to {number(values.max())}, {many}"
    )


def _who(row: Mapping[Any, Any], skip: tuple[str, ...] = ()) -> str:
    """Return what a row is of: all its texts, but states that say nothing."""
    texts = [
        str(value)
        for name, value in row.items()
        if isinstance(value, str) and value and name not in (*skip, "unit", "words", "of_blocks")
    ]
    places = [
        f"{name} {number(row[name])}" for name in ("users", "rate") if not missing(row.get(name))
    ]
    return ", ".join([*dict.fromkeys(texts), *places])


def _measured(value: Any, low: Any, high: Any) -> str:
    if missing(value):
        return _one_sided(low, high) or MISSING
    if missing(low) or missing(high):
        return f"{number(value)} (no interval)"
    return f"{number(value)} [{number(low)}, {number(high)}]"


def _one_sided(low: Any, high: Any) -> str:
    """Return the bound that an interval is which is open on one side; nothing of others.

    An end is open where there is none; the lower one of a ratio is then 0.
    """
    below, above = (not missing(end) and math.isfinite(float(end)) for end in (low, high))
    if above and (not below or float(low) == 0):
        return _bound(float(high), AT_MOST)
    return _bound(float(low), AT_LEAST) if below and not above else ""


def _bound(value: float, side: str) -> str:
    """Return a bound in words, rounded away from what it bounds: ``at most 0.214``."""
    rounded = at_most(value) if side == AT_MOST else at_least(value)
    return f"{side} {rounded.rpartition(' ')[2]}"


def _unit(column: str, unit: str = "") -> str:
    found = unit or UNITS.get(column.rpartition("_")[2], "")
    return f" {found}" if found else ""


def _noun(column: str) -> str:
    return column.rpartition("_")[0].replace("_", " ") or column
