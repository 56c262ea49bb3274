"""The text of wrk; with ``--latency`` there are percentiles in it.

Sources: ``src/wrk.c``, and texts that wrk 4.1 printed.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from perflab.recordings import Remark
from perflab.recordings.imports.reading import Report, ToolResult, number, share_name, time_ms

BEGIN = r"Running \S+ test @ (\S+).*"
# Words of wrk2, whose texts begin like those of wrk but count from a plan.
OF_WRK2 = re.compile(r"Thread calibration:|HdrHistogram")
_STATISTICS = r"\s*Latency\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+%|-?nan%)\s*"
_ERRORS = r"\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)\s*"
_SHARE = r"\s*(\d+(?:\.\d+)?)%\s+(\S+)\s*"


def fits(text: str) -> bool:
    """Return whether a file begins as the text of wrk."""
    return re.match(rf"\s*{BEGIN}", text) is not None and not OF_WRK2.search(text)


def read(path: Path, text: str) -> ToolResult:
    """Read the text of one load."""
    report = Report(path, text, BEGIN)
    times = {}
    for line, match in report.all(_STATISTICS):
        mean, most = (report.value(line, match[group], time_ms) for group in (1, 3))
        times = {"mean": mean, "max": most}
        break
    for line, match in report.all(_SHARE, after=r"\s*Latency Distribution\s*"):
        share = report.value(line, match[1], number)
        times["max" if share == 100 else share_name(share)] = report.value(line, match[2], time_ms)
    requests = report.count(r"\s*(\d+) requests in \S+, .*", "the number of requests")
    duration_ms = report.number(r"\s*\d+ requests in (\S+), .*", "the duration", time_ms)
    bad = report.count_or(r"\s*Non-2xx or 3xx responses: (\d+)\s*", 0)
    counts = report.first(_ERRORS)
    errors = [*map(int, counts.groups())] if counts else [0]
    return ToolResult(
        requests=requests,
        failures=bad + sum(errors),
        duration_s=duration_ms / 1e3,
        throughput_rps=report.number(r"Requests/sec:\s+(\S+)\s*", "'Requests/sec'"),
        times_ms=times if requests else dict.fromkeys(times, math.nan),
        remarks=_timeouts(errors[-1]),
    )


def _timeouts(count: int) -> tuple[Remark, ...]:
    if not count:
        return ()
    text = f"{count:,} requests took longer than the time-out; their times are in no percentile"
    return (Remark(code="import.timeouts", text=text),)
