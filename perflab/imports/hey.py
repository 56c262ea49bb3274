"""hey: its text, and its requests (``-o csv``).

Sources: ``requester/print.go`` and ``requester/report.go`` of hey, files that hey 0.1.4 wrote.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from perflab.imports.reading import refused, rows_of
from perflab.imports.reports import Report
from perflab.imports.told import RequestRows, Told, share_name
from perflab.imports.units import number

MS_PER_S = 1e3
BEGIN = r"Summary:\s*"
COLUMNS = (
    "response-time", "DNS+dialup", "DNS", "Request-write", "Response-delay", "Response-read",
    "status-code", "offset",
)  # fmt: skip
_SECONDS = r"\s+{}:\s+(\S+) secs\s*"


def fits_text(head: str) -> bool:
    """Say whether a file begins as the text of hey."""
    return re.match(r"\s*Summary:\s*\n\s+Total:\s+\S+ secs", head) is not None


def fits_csv(head: str) -> bool:
    """Say whether a file begins as hey's CSV."""
    return head.partition("\n")[0].strip() == ",".join(COLUMNS)


def read_text(path: Path) -> Told:
    """Read the text of one load; seconds become milliseconds."""
    report = Report(path, BEGIN)
    answers, bad = 0, 0
    for _, match in report.all(r"\s+\[(\d+)\]\s+(\d+) responses\s*"):
        answers += int(match[2])
        bad += int(match[2]) * (int(match[1]) >= 400)
    errors = sum(
        int(match[1])
        for _, match in report.all(r"\s+\[(\d+)\]\s+.*", after=r"Error distribution:\s*")
    )
    names = {"mean": "Average", "min": "Fastest", "max": "Slowest"}
    times = {
        ours: report.number(_SECONDS.format(name), f"'{name}'") * MS_PER_S
        for ours, name in names.items()
    }
    for line, match in report.all(r"\s+(\d+(?:\.\d+)?)%+ in (\S+) secs\s*"):
        share, took_s = (report.value(line, text, number) for text in match.groups())
        # Of too few requests hey prints 0% in place of the last ones.
        if share:
            times[share_name(share)] = took_s * MS_PER_S
    if not answers + errors:
        raise refused(path, 0, "it counts no answer and no error: it is cut off")
    return Told(
        requests=answers + errors,
        failures=bad + errors,
        duration_s=report.number(_SECONDS.format("Total"), "'Total'"),
        throughput_rps=report.number(r"\s+Requests/sec:\s+(\S+)\s*", "'Requests/sec'"),
        times_ms=times if answers else dict.fromkeys(times, math.nan),
    )


def read_csv(path: Path) -> Told:
    """Read hey's CSV: every request that got an answer."""
    rows = RequestRows()
    for line, row in rows_of(path, COLUMNS):
        names = ("offset", "response-time", "DNS+dialup", "Request-write", "Response-delay")
        start, took, dialled, written, waited = (row.number(name) for name in names)
        if not (start >= 0 and took >= 0 and dialled >= 0 and written >= 0 and waited >= 0):
            raise refused(path, line, "a time is missing or below 0")
        status = row.whole("status-code")
        first = start + dialled + written + waited
        begin_ms, first_ms, end_ms = (each * MS_PER_S for each in (start, first, start + took))
        rows.add(begin_ms, first_ms, end_ms, math.nan, str(status), failed=status >= 400)
    if not len(rows):
        raise refused(path, 0, "it has no request: none was answered, or it is cut off")
    return rows.told({})
