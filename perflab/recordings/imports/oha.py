"""oha's JSON (``--output-format json``, before version 1.9 ``-j``).

Source: ``schema.json`` of oha; where nothing was answered, its numbers are null.
"""

from __future__ import annotations

import re
from pathlib import Path

from perflab.recordings.imports.reading import Numbers, Told, share_name

MS_PER_S = 1e3
# What was under way at the end of the load; oha does not count it either.
CUT_OFF = "aborted due to deadline"
_SHARE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


def fits(text: str) -> bool:
    """Say whether a file begins as oha's JSON."""
    return (
        text.lstrip().startswith("{")
        and '"summary"' in text
        and re.search(r'"(successRate|requestsPerSec)"', text) is not None
    )


def read(path: Path, text: str) -> Told:
    """Read the JSON of one load; seconds become milliseconds."""
    told = Numbers(path, text)
    errors = {
        name: told.count("errorDistribution", name)
        for name in told.inside("errorDistribution")
        if name != CUT_OFF
    }
    statuses = {
        status: told.count("statusCodeDistribution", status)
        for status in told.inside("statusCodeDistribution")
    }
    bad = sum(
        number for status, number in statuses.items() if not status.startswith(("1", "2", "3"))
    )
    times = {
        ours: told.told("summary", name) * MS_PER_S
        for ours, name in {"mean": "average", "min": "fastest", "max": "slowest"}.items()
    }
    for name in told.inside("latencyPercentiles"):
        if share := _SHARE.fullmatch(name):
            times[share_name(float(share[1]))] = told.told("latencyPercentiles", name) * MS_PER_S
    return Told(
        requests=sum(statuses.values()) + sum(errors.values()),
        failures=bad + sum(errors.values()),
        duration_s=told.number("summary", "total"),
        throughput_rps=told.number("summary", "requestsPerSec"),
        times_ms=times,
    )
