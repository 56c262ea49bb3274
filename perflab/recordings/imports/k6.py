"""k6: the JSON of its summary (``--summary-export FILE``, or ``data`` of ``handleSummary``).

Sources: the k6 manual, "End of test summary"; files that k6 1.8 wrote.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from perflab.recordings import Remark
from perflab.recordings.imports.reading import Numbers, ToolResult, refused, share_name

OF_SUMMARY = re.compile(r'"(root_group|http_reqs|http_req_\w+|iteration_duration)"\s*:')
DURATION, DROPPED = "http_req_duration", "dropped_iterations"
_NAMES = {"avg": "mean", "min": "min", "med": "p50", "max": "max"}
_SHARE = re.compile(r"p\((\d{1,2}(?:\.\d+)?|100)\)")


def fits(text: str) -> bool:
    """Return whether a file begins as the JSON of a summary."""
    return text.lstrip().startswith("{") and OF_SUMMARY.search(text) is not None


def read(path: Path, text: str) -> ToolResult:
    """Read the summary of one load."""
    numbers = Numbers(path, text)
    # handleSummary has the numbers one level deeper.
    deeper = ("values",) if "values" in numbers.inside("metrics", "http_reqs") else ()
    requests = numbers.count("metrics", "http_reqs", *deeper, "count")
    rate = numbers.number("metrics", "http_reqs", *deeper, "rate")
    times = {}
    for name in numbers.inside("metrics", DURATION, *deeper):
        share = _SHARE.fullmatch(name)
        column = share_name(float(share[1])) if share else _NAMES.get(name)
        if column:
            times[column] = numbers.number_or_nan("metrics", DURATION, *deeper, name)
    if not times:
        raise refused(path, 0, f"it has no '{DURATION}': k6 sent no HTTP request")
    # The "passes" of this rate are failed requests.
    passes = ("metrics", "http_req_failed", *deeper, "passes")
    return ToolResult(
        requests=requests,
        failures=None if math.isnan(numbers.number_or_nan(*passes)) else numbers.count(*passes),
        duration_s=requests / rate if rate else math.nan,
        throughput_rps=rate,
        times_ms=times,
        remarks=_dropped(numbers.number_or_nan("metrics", DROPPED, *deeper, "count")),
    )


def _dropped(number: float) -> tuple[Remark, ...]:
    if not number > 0:
        return ()
    text = f"k6 left out {number:,.0f} iterations that were planned: no user was free for them"
    return (Remark(code="import.dropped", side="client", text=text),)
