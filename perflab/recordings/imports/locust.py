"""Locust: the statistics that it writes as CSV (``--csv PREFIX``: ``PREFIX_stats.csv``).

Source: the Locust manual, "Retrieve test statistics in CSV format"; files that Locust 2 wrote.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

from perflab.recordings.imports.reading import ToolResult, number, refused, share_name

_COUNTS = ("Name", "Request Count", "Failure Count", "Requests/s")
_TIMES = {
    "mean": "Average Response Time", "min": "Min Response Time", "max": "Max Response Time",
}  # fmt: skip
_SHARE = re.compile(r"(\d{1,2}(?:\.\d+)?)%")
ALL = "Aggregated"


def fits(text: str) -> bool:
    """Return whether a file begins as the statistics of a whole load."""
    names = text.partition("\n")[0].strip().replace('"', "").split(",")
    return {*_COUNTS, *_TIMES.values()} <= {*names}


def read(path: Path, text: str) -> ToolResult:
    """Read the statistics of one load."""
    if not text.endswith("\n"):
        # Without this check a number that is cut off would pass as a number.
        raise refused(path, text.count("\n") + 1, "it ends within a line: it is cut off")
    if not fits(text):
        raise refused(path, 1, "it does not begin as the statistics of a load")
    line, row = _row(path, text)

    def cell(name: str) -> float:
        if row[name] in ("N/A", ""):
            return math.nan
        try:
            return number(row[name])
        except ValueError as error:
            raise refused(path, line, f"column '{name}': {error}") from None

    def count(name: str) -> int:
        value = cell(name)
        if not (value >= 0 and value.is_integer()):
            raise refused(path, line, f"column '{name}': '{row[name]}' is not a count")
        return int(value)

    requests, rate = count("Request Count"), cell("Requests/s")
    shares = {
        share_name(float(match[1])): name for name in row if (match := _SHARE.fullmatch(name))
    }
    times = {column: cell(name) for column, name in {**_TIMES, **shares}.items()}
    return ToolResult(
        requests=requests,
        failures=count("Failure Count"),
        duration_s=requests / rate if rate > 0 else math.nan,
        throughput_rps=rate,
        # Locust writes 0 for times where there was no request.
        times_ms=times if requests else dict.fromkeys(times, math.nan),
    )


def _row(path: Path, text: str) -> tuple[int, dict[str, str]]:
    """Return line number and cells of the row about all requests."""
    table = csv.DictReader(text.splitlines(keepends=True), strict=True)
    rows = []
    try:
        for row in table:
            if None in row or None in row.values():
                raise refused(
                    path, table.line_num, "it has another number of cells than the header"
                )
            if row["Name"] == ALL:
                rows.append((table.line_num, dict(row)))
    except csv.Error as error:
        raise refused(path, table.line_num, str(error)) from None
    if len(rows) != 1:
        raise refused(path, 0, f"it has {len(rows)} rows '{ALL}' and must have one; is it cut off?")
    return rows[0]
