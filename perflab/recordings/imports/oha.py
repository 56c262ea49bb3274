"""oha's JSON (``--output-format json``, before version 1.9 ``-j``).

Source: ``schema.json`` of oha. Its numbers are null where no request was answered.
"""

from __future__ import annotations

import re
from pathlib import Path

from perflab.recordings.imports.reading import Numbers, ToolResult, share_name

MS_PER_S = 1e3
# The requests in flight at the end of the load, which oha does not count either.
CUT_OFF = "aborted due to deadline"
_SHARE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


def fits(text: str) -> bool:
    """Return whether a file begins as oha's JSON."""
    return (
        text.lstrip().startswith("{")
        and '"summary"' in text
        and re.search(r'"(successRate|requestsPerSec)"', text) is not None
    )


def read(path: Path, text: str) -> ToolResult:
    """Read the JSON of one load; seconds become milliseconds."""
    numbers = Numbers(path, text)
    errors = {
        name: numbers.count("errorDistribution", name)
        for name in numbers.inside("errorDistribution")
        if name != CUT_OFF
    }
    statuses = {
        status: numbers.count("statusCodeDistribution", status)
        for status in numbers.inside("statusCodeDistribution")
    }
    bad = sum(
        number for status, number in statuses.items() if not status.startswith(("1", "2", "3"))
    )
    times = {
        column: numbers.number_or_nan("summary", name) * MS_PER_S
        for column, name in {"mean": "average", "min": "fastest", "max": "slowest"}.items()
    }
    for name in numbers.inside("latencyPercentiles"):
        if share := _SHARE.fullmatch(name):
            times[share_name(float(share[1]))] = (
                numbers.number_or_nan("latencyPercentiles", name) * MS_PER_S
            )
    return ToolResult(
        requests=sum(statuses.values()) + sum(errors.values()),
        failures=bad + sum(errors.values()),
        duration_s=numbers.number("summary", "total"),
        throughput_rps=numbers.number("summary", "requestsPerSec"),
        times_ms=times,
    )
