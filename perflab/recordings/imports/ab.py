"""The text of ApacheBench (ab). Its times are whole milliseconds.

Sources: the manual page of ab, ``support/ab.c``, and texts that ab 2.3 printed.
"""

from __future__ import annotations

import re
from pathlib import Path

from perflab.recordings import Remark
from perflab.recordings.imports.reading import Report, ToolResult, number, refused, share_name

BEGIN = r"This is ApacheBench, Version .*"
_LONGEST = r"\s*100%\s+\d+ \(longest request\)\s*"


def fits(text: str) -> bool:
    """Return whether a file begins as the text of ab."""
    return re.match(rf"\s*{BEGIN}", text) is not None


def read(path: Path, text: str) -> ToolResult:
    """Read the text of one load."""
    report = Report(path, text, BEGIN)
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
    return ToolResult(
        requests=requests,
        # One request may have both a bad status and a body of another length.
        failures=max(failed, bad),
        duration_s=report.number(r"Time taken for tests:\s+(\S+) seconds\s*", "its duration"),
        throughput_rps=report.number(r"Requests per second:\s+(\S+) \[#/sec\].*", "its throughput"),
        times_ms=times,
        remarks=_overlap(failed, bad),
    )


def _overlap(failed: int, bad: int) -> tuple[Remark, ...]:
    if not (failed and bad):
        return ()
    text = f"ab counts {failed:,} failed requests and {bad:,} bad statuses; some may be both"
    return (Remark(code="import.failures", text=text),)
