"""Locust's CSV files: ``PREFIX_stats.csv``, with ``_stats_history.csv`` and ``_failures.csv``.

Source: the Locust manual, "Retrieve test statistics in CSV format"; files that Locust 2 wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perflab.errors import ImportRefused
from perflab.imports.instants import utc_text
from perflab.imports.reading import Row, refused, rows_of
from perflab.imports.told import Told, share_name
from perflab.recordings import Remark

STATS, HISTORY, FAILURES = "_stats.csv", "_stats_history.csv", "_failures.csv"
SUFFIXES = (HISTORY, STATS, FAILURES)
SHOWN_FAILURES = 5
_COUNTS = ("Name", "Request Count", "Failure Count")
_TIMES = {
    "mean": "Average Response Time", "min": "Min Response Time", "max": "Max Response Time",
}  # fmt: skip
_HISTORY = ("Timestamp", "User Count", "Name", "Total Request Count")
_FAILURES = ("Method", "Name", "Error", "Occurrences")
_SHARE = re.compile(r"(\d{1,2}(?:\.\d+)?)%")
ALL = "Aggregated"


def fits_csv(head: str) -> bool:
    """Say whether a file begins as one of the three."""
    names = set(head.partition("\n")[0].strip().replace('"', "").split(","))
    return any(names >= set(wanted) for wanted in ((*_COUNTS, "Requests/s"), _HISTORY, _FAILURES))


def group_of(path: Path) -> tuple[str, str]:
    """Return what files of one load have in common, and which of them this is.

    Raises
    ------
    ImportRefused
        Its name does not end as Locust's do.
    """
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return str(path)[: -len(suffix)], suffix
    raise refused(path, 0, f"its name ends in none of {', '.join(SUFFIXES)}; keep Locust's names")


def read_csv(paths: Sequence[Path]) -> Told:
    """Read the files of one load; that of the statistics must be among them.

    Raises
    ------
    ImportRefused
        It is not, a file is damaged, or they are of different loads.
    """
    by_kind = {group_of(path)[1]: path for path in paths}
    if STATS not in by_kind:
        other = paths[0]
        raise refused(other, 0, f"name {group_of(other)[0]}{STATS} too: it has the statistics")
    found = _stats(by_kind[STATS])
    if HISTORY in by_kind:
        found = _with_history(by_kind[HISTORY], found)
    return _with_failures(by_kind[FAILURES], found) if FAILURES in by_kind else found


def _stats(path: Path) -> Told:
    header = (*_COUNTS, *_TIMES.values(), "Requests/s")
    rows = [row for _, row in rows_of(path, header) if row["Name"] == ALL]
    if len(rows) != 1:
        raise refused(path, 0, f"it has {len(rows)} rows '{ALL}', not one; is it cut off?")
    (row,) = rows
    requests = row.whole("Request Count")
    rate = row.number("Requests/s")
    shares = {share_name(float(match[1])): name for name, match in _shares(row)}
    times = {ours: row.number(name) for ours, name in {**_TIMES, **shares}.items()}
    if requests == 0:
        # Locust writes 0 for times that there are none of.
        times = dict.fromkeys(times, math.nan)
    return Told(
        requests=requests,
        failures=row.whole("Failure Count"),
        duration_s=requests / rate if rate > 0 else math.nan,
        throughput_rps=rate,
        times_ms=times,
    )


def _shares(row: Row) -> list[tuple[str, re.Match[str]]]:
    found = ((name, _SHARE.fullmatch(name)) for name in row)
    return [(name, match) for name, match in found if match]


def _with_history(path: Path, told: Told) -> Told:
    """Add when it began, and how many users there were at most."""
    begin, users, counted = math.nan, 0, 0
    for line, row in rows_of(path, _HISTORY):
        if row["Name"] != ALL:
            continue
        at = row.number("Timestamp")
        begin = at if math.isnan(begin) else begin
        users = max(users, row.whole("User Count"))
        counted = max(counted, row.whole("Total Request Count"))
        if counted > (told.requests or 0):
            raise _of_another(path, line, f"{counted:,} requests", f"{told.requests or 0:,}")
    if math.isnan(begin):
        return told
    return replace(told, settings={**told.settings, "began": utc_text(begin), "users": str(users)})


def _with_failures(path: Path, told: Told) -> Told:
    """Add what failed, and how often."""
    found = [
        (row.whole("Occurrences"), f"{row['Method']} {row['Name']}: {row['Error']:.200}")
        for _, row in rows_of(path, _FAILURES)
    ]
    total = sum(times for times, _ in found)
    if total != told.failures:
        raise _of_another(path, 0, f"{total:,} failures", f"{told.failures or 0:,}")
    worst = sorted(found, key=lambda each: (-each[0], each[1]))[:SHOWN_FAILURES]
    remarks = [
        Remark(code="import.failures", text=f"Locust counts {times:,} times {what}")
        for times, what in worst
    ]
    return replace(told, remarks=(*told.remarks, *remarks))


def _of_another(path: Path, line: int, here: str, there: str) -> ImportRefused:
    return refused(path, line, f"it has {here}, the statistics {there}: they are of two loads")
