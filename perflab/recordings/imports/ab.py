"""The text of ApacheBench (ab). Its times are whole milliseconds.

Sources: the manual page of ab, ``support/ab.c``, and texts that ab 2.3 printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from perflab.recordings import Remark
from perflab.recordings.imports.reading import Report, number, refused
from perflab.recordings.imports.results import ToolResult, contradiction, failures_of

BEGIN = r"\s*This is ApacheBench, Version .*"
_TOTAL = r"Total:\s+(\d+)\s+(\d+)\s+[\d.]+\s+(\d+)\s+(\d+)\s*"
_LONGEST = r"\s*100%\s+\d+ \(longest request\)\s*"
END = rf"Transfer rate:.*|{_TOTAL}|{_LONGEST}"
_KINDS = r"\s*\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)\s*"


def fits(text: str) -> bool:
    """Return whether a file holds the text of ab."""
    return re.search(f"(?m)^{BEGIN}", text) is not None


def read(path: Path, text: str) -> ToolResult:
    """Read the text of one load.

    Requests that got no connection are not among the complete ones. One complete request may have
    both a bad status and a body of another length.
    """
    report = Report(path, text)
    requests = report.count(r"Complete requests:\s+(\d+)\s*", "requests")
    if requests > 1 and not [*report.all(_LONGEST)]:
        raise refused(path, 0, "it ends before the percentage 100%: it is cut off")
    failed = report.count(r"Failed requests:\s+(\d+)\s*", "failures")
    kinds = report.counts(_KINDS)
    unconnected = min(failed, kinds[0]) if kinds else 0
    bad = sum(report.counts(r"Non-2xx responses:\s+(\d+)\s*"))
    failures, unsure = failures_of(requests, [failed - unconnected, bad], unconnected)
    return ToolResult(
        requests=requests + unconnected,
        failures=failures,
        rated=requests,
        duration_s=report.number(r"Time taken for tests:\s+(\S+) seconds\s*", "duration"),
        throughput_rps=report.number(r"Requests per second:\s+(\S+) \[#/sec\].*", "throughput"),
        times_ms=_times(report),
        steps=report.steps,
        lines=report.lines,
        remarks=(*unsure, *_sums(report, failed, kinds)),
    )


def _times(report: Report) -> dict[str, float]:
    times = {}
    for line, match in report.all(_TOTAL):
        for name, text in zip(("min", "mean", "p50", "max"), match.groups(), strict=True):
            times[name] = report.value(line, text, number, name)
    after = r"Percentage of the requests served within a certain time \(ms\)\s*"
    share = r"\s*(\d+)%\s+(\d+)(?: \(longest request\))?\s*"
    return times | dict(report.shares(share, after, number))


def _sums(report: Report, failed: int, kinds: Sequence[int]) -> Iterator[Remark]:
    if kinds and sum(kinds) != failed:
        line = report.lines["failures"]
        parts = f"its kinds of failure sum up to {sum(kinds):,}"
        yield contradiction(f"{parts}, and it tells {failed:,} failed (lines {line}, {line + 1})")
