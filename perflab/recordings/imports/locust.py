"""Locust: the statistics that it writes as CSV (``--csv PREFIX``: ``PREFIX_stats.csv``).

Its other files (``PREFIX_stats_history.csv``, ``_failures``, ``_exceptions``) are of the same load:
they are left out, with a remark on what they tell.

Source: the Locust manual, "Retrieve test statistics in CSV format"; files that Locust 2 wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perflab.recordings import Remark
from perflab.recordings.imports.reading import csv_rows, number, refused, share_name
from perflab.recordings.imports.results import ALIKE, ToolResult, contradiction
from perflab.statistics.in_words import number as in_words

COUNTS, RATE = ("Request Count", "Failure Count"), "Requests/s"
MEDIAN, LONGEST = "Median Response Time", "Max Response Time"
_TIMES = {
    "mean": "Average Response Time", "min": "Min Response Time", "max": "Max Response Time",
}  # fmt: skip
_SHARE = re.compile(r"(\d{1,2}(?:\.\d+)?)%")
ALL = "Aggregated"
# The columns of the files of the same load, what they hold, and the column that counts it.
_BESIDE = (
    ({"Count", "Message", "Traceback"}, "exceptions of its users", "Count"),
    ({"Method", "Name", "Error", "Occurrences"}, "failures by error", "Occurrences"),
    ({"Timestamp", "User Count", "Total Request Count"}, "the load's history", ""),
)
# Percentiles are of times rounded to two digits, and to whole ms below 100.
_MOST_DIGITS = 2


def fits(text: str) -> bool:
    """Return whether a file begins as the statistics of a whole load."""
    return {"Name", *COUNTS, RATE, *_TIMES.values()} <= _header(text)


def _header(text: str) -> set[str]:
    return {*text.lstrip().partition("\n")[0].rstrip("\r").replace('"', "").split(",")}


def beside(path: Path, text: str) -> str:
    """Return what a file holds that Locust writes beside the statistics; empty for others."""
    for columns, what, counts in _BESIDE:
        if columns <= _header(text):
            cells = [row[counts] for _, row in csv_rows(path, text)] if counts else []
            total = sum(int(cell) for cell in cells if cell.isdecimal())
            return f"{total:,} {what}" if counts else what
    return ""


def read(path: Path, text: str) -> ToolResult:
    """Read the statistics of one load."""
    if not fits(text):
        raise refused(path, 1, "it does not begin as the statistics of a load")
    rows = [*csv_rows(path, text)]
    totals = [(line, row) for line, row in rows if row["Name"] == ALL]
    if len(totals) != 1:
        words = f"it has {len(totals)} rows '{ALL}' and must have one; is it cut off?"
        raise refused(path, totals[1][0] if totals else 0, words)
    ((line, total),) = totals
    shares = {share_name(float(fit[1])): name for name in total if (fit := _SHARE.fullmatch(name))}
    names = {**_TIMES, **shares, **dict(zip(("requests", "failures"), COUNTS, strict=True))}
    told = {name: _cell(path, line, total, column) for name, column in names.items()}
    for column in COUNTS:
        if not _cell(path, line, total, column).is_integer():
            raise refused(path, line, f"column '{column}': '{total[column]}' is not a count")
    requests, failures, rate = told["requests"], told["failures"], _cell(path, line, total, RATE)
    return ToolResult(
        requests=int(requests),
        failures=int(failures),
        rated=int(requests),
        duration_s=requests / rate if rate > 0 else math.nan,
        throughput_rps=rate,
        # Locust writes 0 for times where there was no request.
        times_ms={name: told[name] if requests else math.nan for name in {**_TIMES, **shares}},
        steps={name: _step_ms(told[name]) for name in shares},
        lines=dict.fromkeys(names, line),
        remarks=(*_sums(path, rows), *_twice(path, rows, line, total)),
    )


def _cell(path: Path, line: int, row: Mapping[str, str], name: str) -> float:
    """Return the number in a column, which is at least 0; NaN where Locust has none."""
    if row[name] in ("N/A", ""):
        return math.nan
    try:
        value = number(row[name])
    except ValueError as error:
        raise refused(path, line, f"column '{name}': {error}") from None
    if value < 0:
        raise refused(path, line, f"column '{name}': {row[name]} is below 0")
    return value


def _step_ms(value_ms: float) -> float:
    if math.isnan(value_ms) or value_ms < 1:
        return 1.0
    return max(1.0, 10.0 ** (math.floor(math.log10(value_ms)) + 1 - _MOST_DIGITS))


def _twice(
    path: Path, rows: Sequence[tuple[int, Mapping[str, str]]], line: int, total: Mapping[str, str]
) -> Iterator[Remark]:
    """Yield the contradictions of numbers that stand in the file twice."""
    pairs = [(LONGEST, max(_cell(path, at, row, LONGEST) for at, row in rows))]
    if {MEDIAN, "50%"} <= {*total}:
        pairs.append((MEDIAN, _cell(path, line, total, "50%")))
    for name, other in pairs:
        told = _cell(path, line, total, name)
        if abs(told - other) > max(_step_ms(told), _step_ms(other)):
            words = f"'{name}' is {in_words(told)} ms in all (line {line}), and elsewhere"
            yield contradiction(f"{words} {in_words(other)} ms")


def _sums(path: Path, rows: Sequence[tuple[int, Mapping[str, str]]]) -> Iterator[Remark]:
    """Yield the contradictions of the total with the sum of the other rows."""
    for name, slack in {**dict.fromkeys(COUNTS, 1.0), RATE: ALIKE}.items() if len(rows) > 1 else ():
        cells = [(line, row["Name"], _cell(path, line, row, name)) for line, row in rows]
        ((place, _, told),) = (cell for cell in cells if cell[1] == ALL)
        summed = sum(value for _, label, value in cells if label != ALL)
        if told > summed * slack or told < summed / slack:
            words = f"'{name}' is {in_words(told)} in all (line {place}), and {in_words(summed)}"
            yield contradiction(
                f"{words} in the sum of its rows (lines {rows[0][0]} to {rows[-1][0]})"
            )
