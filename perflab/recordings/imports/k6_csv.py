"""k6's CSV (``--out csv=FILE``): rows in any order, some ten for each request, of one load.

Source: the k6 manual, "CSV".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from perflab.recordings import Remark
from perflab.recordings.imports.k6 import DROPPED, DURATION, dropped
from perflab.recordings.imports.reading import csv_rows, number, refused, share_name
from perflab.recordings.imports.results import NS_MS, SHARES, ToolResult, contradiction
from perflab.statistics.quantiles import needed_n

HEADER = ("metric_name", "timestamp", "metric_value")
# Every request has one row of each of these, as far as a file has them.
_OF_A_REQUEST = re.compile(r"http_reqs|http_req_(?!failed)\w+")
# k6 waits one minute for an answer. Rows that are always so far apart are of one load all the same.
GAP = "import.gap"
GAP_S, LONG_S, GAP_TIMES = 60.0, 5.0, 30.0
# From this share of the duration on, the step of the instants is too coarse for a rate.
COARSE = 0.1
# Two requests of one instant rarely take the same time, which k6 tells to the nanosecond.
SAME = 0.3
_STEPS_S = {10: 1.0, 13: 1e-3, 16: 1e-6, 19: 1e-9}


def fits(text: str) -> bool:
    """Return whether a file begins as k6's CSV."""
    return tuple(text.lstrip().partition("\n")[0].rstrip("\r").split(",")[:3]) == HEADER


def read(path: Path, text: str) -> ToolResult:
    """Read the rows of one load."""
    begins, instants, counts, step_s = [1], [], Counter[str](), 0.0
    requests, left_out = [], 0.0
    for line, row in csv_rows(path, text):
        metric, instant, value = (row[name] for name in HEADER)
        if metric == HEADER[0]:
            begins.append(line)
            continue
        try:
            at_s, worth = _seconds(instant), number(value)
            if metric == DURATION and worth < 0:
                raise ValueError(f"its request of {value} ms cannot be")
        except (ValueError, OverflowError) as error:
            raise refused(path, line, str(error)) from None
        instants.append((at_s, line))
        counts[metric] += 1
        if metric == DURATION:
            requests.append((at_s, worth, row.get("expected_response")))
        left_out += worth * (metric == DROPPED)
        step_s = max(step_s, _STEPS_S.get(len(instant), 1e-6))
    several = _several(path, begins, instants)
    if not requests:
        raise refused(path, 0, f"it has no row of {DURATION}: k6 sent no HTTP request")
    for name, count in counts.items():
        if _OF_A_REQUEST.fullmatch(name) and count != len(requests):
            words = f"it has {len(requests):,} rows of {DURATION} and {count:,} of {name}"
            raise refused(path, 0, f"{words}: it is cut off, or rows are missing")
    found = _result(requests, step_s, left_out)
    return replace(found, remarks=(*found.remarks, *several, *_twice(requests)))


def _twice(requests: Sequence[tuple[float, float, str | None]]) -> Iterator[Remark]:
    """Yield the contradiction of requests that stand in a file twice: it was appended to itself."""
    again = len(requests) - len({(at_s, took_ms) for at_s, took_ms, _ in requests})
    if again >= SAME * len(requests):
        yield contradiction(f"{again:,} of its {len(requests):,} requests stand in it already")


def _seconds(instant: str) -> float:
    """Return an instant in seconds: whole seconds to nanoseconds since 1970, or RFC 3339."""
    if instant.isascii() and instant.isdigit() and len(instant) in _STEPS_S:
        return int(instant) * _STEPS_S[len(instant)]
    return datetime.fromisoformat(instant).timestamp()


def _several(
    path: Path, begins: Sequence[int], instants: Sequence[tuple[float, int]]
) -> Sequence[Remark]:
    """Return a remark on the longest time without rows, if it is long for this file.

    Raises ImportRefused where a second header, or a minute without rows, begins another load.
    """
    gaps = [(after - at, line) for (at, _), (after, line) in pairwise(sorted(instants))]
    sizes = np.sort([gap for gap, _ in gaps])
    sums, unusual = np.cumsum(sizes), []
    for gap, line in gaps if len(begins) == 1 else ():
        smaller = int(np.searchsorted(sizes, gap))
        if gap > LONG_S and smaller and gap > GAP_TIMES * sums[smaller - 1] / smaller:
            unusual.append((gap, line))
    lines = [*begins, *(line for gap, line in unusual if gap > GAP_S)]
    if len(lines) > 1:
        words = f"it holds {len(lines)} loads, which begin at lines {', '.join(map(str, lines))}"
        raise refused(path, lines[1], f"{words}: save each in a file of its own")
    text = "it has no row for {:.0f} s before line {}: if a load begins there, save it by itself"
    return [Remark(code=GAP, text=text.format(*gap)) for gap in sorted(unusual)[-1:]]


def _result(
    requests: Sequence[tuple[float, float, str | None]], step_s: float, left_out: float
) -> ToolResult:
    ends_s, times_ms = np.array([(at, value) for at, value, _ in requests]).T
    expected = Counter(word for _, _, word in requests)
    n, duration_s = len(requests), float(ends_s.max() - (ends_s - times_ms / 1e3).min())
    coarse = step_s >= COARSE * duration_s
    rate = math.nan if coarse else n / duration_s
    shares = {share_name(share): share for share in SHARES if n >= needed_n(share)}
    times = {"mean": times_ms.mean(), "min": times_ms.min(), "max": times_ms.max()}
    times |= {name: np.percentile(times_ms, share) for name, share in shares.items()}
    text = f"its instants are known to {step_s:g} s only, too coarse for the rate; "
    too_coarse = Remark(code="import.coarse", text=text + "use K6_CSV_TIME_FORMAT=unix_micro")
    return ToolResult(
        requests=n,
        failures=expected["false"] if {*expected} <= {"true", "false"} else None,
        rated=n,
        duration_s=math.nan if coarse else duration_s,
        throughput_rps=rate,
        times_ms={name: float(value) for name, value in times.items()},
        steps={**dict.fromkeys(times, NS_MS), "throughput": rate * step_s / (duration_s or 1)},
        remarks=(*dropped(left_out), *[too_coarse] * coarse),
    )
