"""The text of wrk and of wrk2, which derives from it and counts its times from its plan.

Sources: ``src/wrk.c`` of both, and texts that wrk 4.1 printed.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from perflab.imports.reports import Report
from perflab.imports.told import Told, share_name
from perflab.imports.units import number, time_ms
from perflab.recordings import Remark

BEGIN = r"Running \S+ test @ (\S+).*"
_OF_WRK2 = re.compile(r"Thread calibration:|HdrHistogram", re.M)
_SPECTRUM = (0.5, 0.75, 0.9, 0.95, 0.99)
_STATISTICS = r"\s*Latency\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+%|-?nan%)\s*"
_SHARE = r"\s*(\d+(?:\.\d+)?)%\s+(\S+)\s*"


def fits_wrk(head: str) -> bool:
    """Say whether a file begins as the text of wrk."""
    return re.match(rf"\s*{BEGIN}", head) is not None and not _OF_WRK2.search(head)


def fits_wrk2(head: str) -> bool:
    """Say whether a file begins as the text of wrk2."""
    return re.match(rf"\s*{BEGIN}", head) is not None and _OF_WRK2.search(head) is not None


def read_wrk(path: Path) -> Told:
    """Read the text of one load; with ``--latency`` there are percentiles in it."""
    return _told(Report(path, BEGIN), r"\s*Latency Distribution\s*")


def read_wrk2(path: Path) -> Told:
    """Read the text of one load, and of the spectrum with ``--latency`` what is asked for most.

    With ``-U`` a second distribution counts from the sending; it is left out.
    """
    report = Report(path, BEGIN)
    told = _told(report, r"\s*Latency Distribution \(HdrHistogram - Recorded Latency\)\s*")
    spectrum = dict(told.times_ms)
    below = r"\s*Detailed Percentile spectrum:\s*"
    for line, match in report.all(r"\s*([\d.]+)\s+([01]\.\d+)\s+\d+\s+(?:[\d.]+|inf)\s*", below):
        share = report.value(line, match[2], number)
        if share in _SPECTRUM:
            spectrum[share_name(share * 100)] = report.value(line, match[1], number)
    return Told(**{**vars(told), "times_ms": spectrum})


def _told(report: Report, distribution: str) -> Told:
    times = {}
    for line, match in report.all(_STATISTICS):
        times = {
            name: report.value(line, match[group], time_ms)
            for name, group in {"mean": 1, "max": 3}.items()
        }
        break
    for line, match in report.all(_SHARE, after=distribution):
        share = report.value(line, match[1], number)
        times["max" if share == 100 else share_name(share)] = report.value(line, match[2], time_ms)
    requests = report.count(r"\s*(\d+) requests in \S+, .*", "the number of requests")
    duration_ms = report.time_ms(r"\s*\d+ requests in (\S+), .*", "the duration")
    bad = report.count_or(r"\s*Non-2xx or 3xx responses: (\d+)\s*", 0)
    errors = _socket_errors(report)
    settings = report.first(BEGIN)
    return Told(
        requests=requests,
        failures=bad + errors,
        duration_s=duration_ms / 1e3,
        throughput_rps=report.number(r"Requests/sec:\s+(\S+)\s*", "'Requests/sec'"),
        times_ms=times if requests else dict.fromkeys(times, math.nan),
        settings={"url": settings[1]} if settings else {},
        remarks=_timeouts(report),
    )


def _socket_errors(report: Report) -> int:
    found = report.first(
        r"\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)\s*"
    )
    return sum(map(int, found.groups())) if found else 0


def _timeouts(report: Report) -> tuple[Remark, ...]:
    number_of = report.count_or(r"\s*Socket errors: .*timeout (\d+)\s*", 0)
    if not number_of:
        return ()
    text = f"{number_of:,} requests took longer than the time-out; their times are in no percentile"
    return (Remark(code="import.timeouts", text=text),)
