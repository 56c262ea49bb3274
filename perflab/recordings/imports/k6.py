"""k6: the JSON of its summary.

These are ``--summary-export FILE``, ``data`` of ``handleSummary``, and the machine-readable summary
(``--new-machine-readable-summary``, from k6 2 on the only one).

Sources: the k6 manual, "End of test summary"; files that k6 1.8 wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perflab.recordings import Remark
from perflab.recordings.imports.reading import Numbers, refused, share_name
from perflab.recordings.imports.results import ALIKE, NS_MS, ToolResult, contradiction
from perflab.statistics.in_words import number

OF_SUMMARY = re.compile(r'"(root_group|http_reqs|http_req_\w+|iteration_duration|k6_version)"\s*:')
REQUESTS, DURATION, DROPPED = "http_reqs", "http_req_duration", "dropped_iterations"
_NAMES = {"avg": "mean", "min": "min", "med": "p50", "max": "max"}
_SHARE = re.compile(r"p\(?(\d{1,2}(?:\.\d+)?|100)\)?")


def fits(text: str) -> bool:
    """Return whether a file begins as the JSON of a summary."""
    return text.lstrip().startswith("{") and OF_SUMMARY.search(text) is not None


def read(path: Path, text: str) -> ToolResult:
    """Read the summary of one load."""
    numbers = Numbers(path, text)
    numbers.document["metrics"] = _metrics(numbers)
    requests = numbers.count("metrics", REQUESTS, "count")
    times = {}
    for name in numbers.inside("metrics", DURATION):
        share = _SHARE.fullmatch(name)
        column = share_name(float(share[1])) if share else _NAMES.get(name)
        if column:
            times[column] = numbers.number_or_nan("metrics", DURATION, name)
    if not times:
        raise refused(path, 0, f"it has no '{DURATION}': k6 sent no HTTP request")
    if not times.get("max", 1):
        # k6 writes 0 for requests that got no answer.
        times = dict.fromkeys(times, math.nan)
    failures, judged = _failures(numbers)
    checks = _checks(numbers)
    # The machine-readable summary has the duration, the others have the rate.
    duration_s = numbers.number_or_nan("config", "duration")
    rate = numbers.number_or_nan("metrics", REQUESTS, "rate")
    duration_s = requests / (rate or math.nan) if math.isnan(duration_s) else duration_s
    return ToolResult(
        requests=requests,
        failures=failures,
        rated=requests,
        checks=checks,
        duration_s=duration_s,
        throughput_rps=requests / (duration_s or math.nan) if math.isnan(rate) else rate,
        times_ms=times,
        steps=dict.fromkeys(times, NS_MS),
        remarks=(
            *_contradictions(numbers, requests, judged, duration_s),
            *_failed_checks(*checks),
            *dropped(numbers.number_or_nan("metrics", DROPPED, "count")),
        ),
    )


def _metrics(numbers: Numbers) -> dict[str, Any]:
    """Return the values of each metric by its name, in whichever form the summary has them."""
    metrics = numbers.inside("metrics")
    listed = numbers.inside("results").get("metrics")
    if isinstance(listed, list):
        metrics = {str(item.get("name")): item for item in listed if isinstance(item, Mapping)}
    return {
        name: item.get("values", item) if isinstance(item, Mapping) else item
        for name, item in metrics.items()
    }


def _failures(numbers: Numbers) -> tuple[int | None, int | None]:
    """Return how many requests failed, of how many that k6 judged; None where it does not say."""
    place = ("metrics", "http_req_failed")
    # The "passes" or "matches" of this rate are failed requests.
    for failed, others in (("passes", "fails"), ("matches", "total")):
        if {failed, others} <= {*numbers.inside(*place)}:
            failures, rest = (numbers.count(*place, name) for name in (failed, others))
            return failures, rest + (failures if others == "fails" else 0)
    return None, None


def _checks(numbers: Numbers) -> tuple[int, int]:
    """Return how many of the script's checks failed, and of how many, in whichever form."""
    checks = numbers.inside("results").get("checks")
    listed = checks.get("metrics") if isinstance(checks, Mapping) else None
    if isinstance(listed, list):
        items = (item for item in listed if isinstance(item, Mapping))
        rates = {str(item.get("name")): item.get("values") for item in items}
        numbers.document["metrics"] |= {"checks": rates.get("checks_failed") or {}}
    place = ("metrics", "checks")
    for failed, others in (("matches", "total"), ("fails", "passes")):
        if {failed, others} <= {*numbers.inside(*place)}:
            failures, rest = (numbers.count(*place, name) for name in (failed, others))
            return failures, rest + (failures if others == "passes" else 0)
    return 0, 0


def _failed_checks(failed: int, checks: int) -> Iterator[Remark]:
    """Yield the remark on answers that the script's own checks refused."""
    if failed:
        share = f"{number(100 * failed / checks)}% of the checks of its script failed"
        text = f"{share} ({failed:,} of {checks:,}): k6 counts these answers among the successes"
        yield Remark(code="import.checks", text=text)


def _contradictions(
    numbers: Numbers, requests: int, judged: int | None, duration_s: float
) -> Iterator[Remark]:
    if judged not in (None, requests):
        yield contradiction(f"'http_reqs' counts {requests:,}, and 'http_req_failed' {judged:,}")
    count, rate = (numbers.number_or_nan("metrics", "iterations", x) for x in ("count", "rate"))
    other_s = count / (rate or math.nan)
    if other_s > duration_s * ALIKE or other_s < duration_s / ALIKE:
        told = f"'http_reqs' tells of {number(duration_s)} s"
        yield contradiction(f"{told}, and 'iterations' of {number(other_s)} s")


def dropped(count: float) -> Iterator[Remark]:
    """Yield the remark on iterations that k6 planned and did not start."""
    if count > 0:
        text = f"k6 left out {count:,.0f} iterations that were planned: no user was free for them"
        yield Remark(code="import.dropped", side="client", text=text)
