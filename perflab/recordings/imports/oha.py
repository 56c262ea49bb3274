"""oha's JSON (``--output-format json``, before version 1.9 ``-j``).

Source: ``schema.json`` of oha. Its numbers are null where no request was answered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from perflab.recordings import Remark
from perflab.recordings.imports.reading import Numbers, share_name
from perflab.recordings.imports.results import NS_MS, ToolResult, contradiction
from perflab.statistics.in_words import as_share

OF_SUMMARY = re.compile(r'"(successRate|requestsPerSec)"\s*:')
MS_PER_S = 1e3
NEAR = 0.001
# The requests in flight at the end of the load, which are no failures.
CUT_OFF = "aborted due to deadline"
_SHARE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


def fits(text: str) -> bool:
    """Return whether a file begins as oha's JSON."""
    return text.lstrip().startswith("{") and OF_SUMMARY.search(text) is not None


def read(path: Path, text: str) -> ToolResult:
    """Read the JSON of one load; seconds become milliseconds."""
    numbers = Numbers(path, text)
    errors, statuses = (
        {name: numbers.count(place, name) for name in numbers.inside(place)}
        for place in ("errorDistribution", "statusCodeDistribution")
    )
    cut_off = errors.pop(CUT_OFF, 0)
    bad = sum(count for status, count in statuses.items() if not status.startswith(("1", "2", "3")))
    times = {
        column: numbers.number_or_nan("summary", name) * MS_PER_S
        for column, name in {"mean": "average", "min": "fastest", "max": "slowest"}.items()
    }
    for name in numbers.inside("latencyPercentiles"):
        if share := _SHARE.fullmatch(name):
            times[share_name(float(share[1]))] = (
                numbers.number_or_nan("latencyPercentiles", name) * MS_PER_S
            )
    requests = sum(statuses.values()) + sum(errors.values())
    return ToolResult(
        requests=requests,
        failures=bad + sum(errors.values()),
        # oha's rate counts the requests in flight too.
        rated=requests + cut_off,
        duration_s=numbers.number("summary", "total"),
        throughput_rps=numbers.number("summary", "requestsPerSec"),
        times_ms=times,
        steps={**dict.fromkeys(times, NS_MS), "duration": NS_MS / MS_PER_S},
        remarks=(
            *_histogram(numbers, sum(statuses.values())),
            *_share(numbers, sum(statuses.values()), requests, requests + cut_off),
        ),
    )


def _share(numbers: Numbers, answers: int, *totals: int) -> Iterator[Remark]:
    """Yield the contradiction of the share of answers with their counts; both totals may do."""
    told = numbers.number_or_nan("summary", "successRate")
    shares = [answers / total for total in totals if total]
    if shares and not math.isnan(told) and all(abs(told - share) > NEAR for share in shares):
        yield contradiction(
            f"its successRate is {as_share(told, 1)}, and {answers:,} of {totals[0]:,} requests "
            "were answered"
        )


def _histogram(numbers: Numbers, answers: int) -> Iterator[Remark]:
    place = "responseTimeHistogram"
    timed = sum(numbers.count(place, name) for name in numbers.inside(place))
    if timed and timed != answers:
        yield contradiction(f"its histogram has {timed:,} answers, and its statuses {answers:,}")
