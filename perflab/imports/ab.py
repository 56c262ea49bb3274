"""ApacheBench (ab): its text, its percentiles (``-e``, CSV), and its requests (``-g``, TSV).

Sources: the manual page of ab, ``support/ab.c``, and files that ab 2.3 wrote.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from perflab.imports.instants import utc_text
from perflab.imports.reading import refused, rows_of
from perflab.imports.reports import Report
from perflab.imports.told import RequestRows, Told, share_name
from perflab.imports.units import number
from perflab.recordings import Remark

BEGIN = r"This is ApacheBench, Version .*"
_LONGEST = r"\s*100%\s+\d+ \(longest request\)\s*"
SHARES = ("Percentage served", "Time in ms")
REQUESTS = ("starttime", "seconds", "ctime", "dtime", "ttime", "wait")
# Percentiles of ab's CSV that the lab has columns for; it has all from 0 to 100.
_KEPT = (50, 75, 90, 95, 99)


def fits_text(head: str) -> bool:
    """Say whether a file begins as the text of ab."""
    return re.match(rf"\s*{BEGIN}", head) is not None


def fits_percentiles(head: str) -> bool:
    """Say whether a file begins as ab's CSV of percentiles."""
    return head.partition("\n")[0].strip() == ",".join(SHARES)


def fits_requests(head: str) -> bool:
    """Say whether a file begins as ab's TSV of requests."""
    return head.partition("\n")[0].strip().split("\t") == list(REQUESTS)


def read_text(path: Path) -> Told:
    """Read the text of one load. Its times are whole milliseconds."""
    report = Report(path, BEGIN)
    times = {}
    for line, match in report.all(r"Total:\s+(\d+)\s+(\d+)\s+[\d.]+\s+(\d+)\s+(\d+)\s*"):
        names = {"min": 1, "mean": 2, "p50": 3, "max": 4}
        times = {name: report.value(line, match[group], number) for name, group in names.items()}
    after = r"Percentage of the requests served within a certain time \(ms\)\s*"
    for line, match in report.all(r"\s*(\d+)%\s+(\d+)(?: \(longest request\))?\s*", after):
        share = report.value(line, match[1], number)
        name = "max" if share == 100 else share_name(share)
        times[name] = report.value(line, match[2], number)
    requests = report.count(r"Complete requests:\s+(\d+)\s*", "'Complete requests'")
    if requests > 1 and report.first(_LONGEST) is None:
        raise refused(path, 0, "it ends before the percentage 100%: it is cut off")
    failed = report.count(r"Failed requests:\s+(\d+)\s*", "'Failed requests'")
    bad = report.count_or(r"Non-2xx responses:\s+(\d+)\s*", 0)
    return Told(
        requests=requests,
        # A bad status and a body of another length may be one request's.
        failures=max(failed, bad),
        duration_s=report.number(r"Time taken for tests:\s+(\S+) seconds\s*", "its duration"),
        throughput_rps=report.number(r"Requests per second:\s+(\S+) \[#/sec\].*", "its throughput"),
        times_ms=times,
        settings={
            name: found[1]
            for name, pattern in (
                ("host", r"Server Hostname:\s+(\S+)\s*"),
                ("path", r"Document Path:\s+(\S+)\s*"),
                ("users", r"Concurrency Level:\s+(\d+)\s*"),
            )
            if (found := report.first(pattern))
        },
        remarks=_overlap(failed, bad),
    )


def _overlap(failed: int, bad: int) -> tuple[Remark, ...]:
    if not (failed and bad):
        return ()
    text = f"ab counts {failed:,} failed requests and {bad:,} bad statuses; some may be both"
    return (Remark(code="import.failures", text=text),)


def read_percentiles(path: Path) -> Told:
    """Read ab's CSV: 101 percentiles and nothing else."""
    found: dict[float, float] = {}
    for line, row in rows_of(path, SHARES):
        share, took_ms = (row.number(name) for name in SHARES)
        if not (0 <= share <= 100 and took_ms >= 0) or share in found:
            raise refused(path, line, f"{share:g}% was served within {took_ms:g} ms: cannot be")
        if found and took_ms < max(found.values()):
            raise refused(path, line, f"{share:g}% took less time than fewer did")
        found[share] = took_ms
    if 100 not in found:
        raise refused(path, 0, "it ends before 100%: it is cut off")
    kept = {share_name(share): found.get(share, math.nan) for share in _KEPT}
    return Told(times_ms={"min": found.get(0, math.nan), **kept, "max": found[100]})


def read_requests(path: Path) -> Told:
    """Read ab's TSV: every request that got an answer; starts are known to the second."""
    rows = RequestRows()
    base_s = 0.0
    for line, row in rows_of(path, REQUESTS, "\t"):
        at_s, connect_ms, took_ms, wait_ms = (
            row.number(name) for name in ("seconds", "ctime", "ttime", "wait")
        )
        if not (at_s >= 0 and connect_ms >= 0 and took_ms >= 0 and wait_ms >= 0):
            raise refused(path, line, "a time is missing or below 0")
        base_s = base_s or at_s
        start_ms = (at_s - base_s) * 1e3
        first_ms = start_ms + connect_ms + wait_ms
        rows.add(start_ms, first_ms, start_ms + took_ms, math.nan, "", failed=False)
    if not len(rows):
        raise refused(path, 0, "it has no request")
    told = rows.told({"began": utc_text(base_s)}, instants_known=False)
    return Told(**{**vars(told), "failures": None})
