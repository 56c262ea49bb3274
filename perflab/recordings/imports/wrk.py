"""The text of wrk; with ``--latency`` there are percentiles in it.

Sources: ``src/wrk.c``, and texts that wrk 4.1 printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from perflab.recordings import Remark
from perflab.recordings.imports.reading import Report, time_ms
from perflab.recordings.imports.results import ToolResult, contradiction, failures_of
from perflab.statistics.in_words import number

BEGIN = r"\s*Running (\S+) test @ (\S+).*"
END = r"Transfer/sec:\s+\S+"
# Words of wrk2, whose texts begin like those of wrk but count from a plan.
OF_WRK2 = re.compile(r"Thread calibration:|HdrHistogram")
_STATISTICS = r"\s*Latency\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+%|-?nan%)\s*"
_ERRORS = r"\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)\s*"
_SHARE = r"\s*(\d+(?:\.\d+)?)%\s+(\S+)\s*"
US_MS = 1e-3


def fits(text: str) -> bool:
    """Return whether a file holds the text of wrk."""
    return re.search(f"(?m)^{BEGIN}", text) is not None and not OF_WRK2.search(text)


def read(path: Path, text: str) -> ToolResult:
    """Read the text of one load.

    Requests that had a socket error are not among wrk's requests. Those that took longer than the
    time-out are, and their status may be bad too.
    """
    report = Report(path, text)
    requests = report.count(r"\s*(\d+) requests in \S+, .*", "requests")
    duration_ms = report.number(r"\s*\d+ requests in (\S+), .*", "duration", time_ms)
    rate = report.number(r"Requests/sec:\s+(\S+)\s*", "throughput")
    # The last line: without it the file is cut off.
    report.number(r"Transfer/sec:\s+([\d.]+)\w+\s*", "transfer")
    bad = sum(report.counts(r"\s*Non-2xx or 3xx responses: (\d+)\s*"))
    *lost, timeouts = report.counts(_ERRORS) or [0]
    # Old versions count time-outs of requests without an answer.
    late = min(timeouts, requests)
    unanswered = sum(lost) + timeouts - late
    failures, unsure = failures_of(requests, [bad, late], unanswered)
    times = _times(report)
    return ToolResult(
        requests=requests + unanswered,
        failures=failures,
        rated=requests,
        duration_s=duration_ms / 1e3,
        throughput_rps=rate,
        times_ms=times,
        steps={**report.steps, "duration": report.steps["duration"] / 1e3},
        lines=report.lines,
        remarks=(*unsure, *_timeouts(timeouts), *_too_long(report, duration_ms)),
    )


def _times(report: Report) -> dict[str, float]:
    """Return the statistics of the times; NaN where wrk has no time, for which it prints 0."""
    times, timed = {}, False
    for line, match in report.all(_STATISTICS):
        timed = "nan" not in match[4]
        for name, text in {"mean": match[1], "max": match[3]}.items():
            times[name] = report.value(line, text, time_ms, name)
    for name, value in report.shares(_SHARE, r"\s*Latency Distribution\s*", time_ms):
        times[name] = value
        # wrk keeps whole microseconds, whatever digits it prints.
        report.steps[name] = max(report.steps[name], US_MS)
    return times if timed else dict.fromkeys(times, math.nan)


def _timeouts(count: int) -> Iterator[Remark]:
    if count:
        text = f"{count:,} requests took longer than the time-out; their times are in no percentile"
        yield Remark(code="import.timeouts", text=text)


def _too_long(report: Report, duration_ms: float) -> Iterator[Remark]:
    """Yield the contradiction of a load that lasted much longer or shorter than it was to last."""
    for line, match in report.all(BEGIN):
        planned_ms = report.value(line, match[1], time_ms, "plan")
        if not planned_ms * 0.5 < duration_ms < planned_ms * 1.5 + 10e3:
            told = f"a test of {planned_ms / 1e3:g} s lasted {number(duration_ms / 1e3)} s"
            lines = f"lines {line} and {report.lines['duration']}"
            yield contradiction(f"{told} ({lines}): it was stopped, or the clock was set")
