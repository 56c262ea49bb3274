"""The numbers of a load as another tool tells them: their columns, and what is to be said of them.

A file is held against itself: its requests, duration and rate, its parts and totals. What cannot
be true is refused; what contradicts another number of the file is a remark on the trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from perflab.recordings import Reason, Remark, Response
from perflab.recordings.imports.reading import refused, share_name
from perflab.recordings.responses import resolution_column
from perflab.statistics.in_words import counted, number
from perflab.statistics.quantiles import needed_n

# The prefix keeps these columns apart from the lab's own, which are other numbers.
PREFIX = "told"
SHARES = (50, 66, 75, 80, 90, 95, 98, 99, 99.9, 99.99, 99.999)
TYPICAL = ("mean", "p50", "p95", "p99")
UNKNOWN = -1
CONTRADICTION, UNSURE = "import.contradiction", "import.failures"
NONE_FAILED = "0% failed"
# How far two numbers of one file may be apart beyond their rounding.
ALIKE = 1.01
TINY = 1e-12
# The lab's own loads, and the file in the folder of each.
OWN, OWN_FILE = "perflab", "load.json"
# The resolution of tools that keep nanoseconds.
NS_MS = 1e-6
NAMES = ("mean", "min", *map(share_name, SHARES), "max")


@dataclass(frozen=True)
class ToolResult:
    """The numbers of one load as a tool reports them; None and NaN are numbers that it lacks.

    ``requests`` are all that the tool tells of, answered or not; the throughput counts ``rated`` of
    them. ``checks`` are the failed ones of its script, and all. ``times_ms`` are
    statistics of its times by name (``mean``, ``p50``, ``p99_9``, ``max``).
    By the same names, ``requests``, ``failures``, ``throughput`` and ``duration``, ``steps`` are
    the resolutions of numbers in their unit, and ``lines`` those where they stand.
    """

    requests: int
    failures: int | None
    duration_s: float
    throughput_rps: float
    times_ms: Mapping[str, float]
    rated: int
    checks: tuple[int, int] = (0, 0)
    steps: Mapping[str, float] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    def where(self, *names: str) -> str:
        """Return the lines of numbers as the end of a clause."""
        lines = sorted({self.lines[name] for name in names if name in self.lines})
        plural = "s" * (len(lines) > 1)
        return f" (line{plural} {', '.join(map(str, lines))})" if lines else ""


def contradiction(text: str) -> Remark:
    """Return the remark on two numbers of one file that cannot both be true."""
    return Remark(code=CONTRADICTION, side="client", text=f"it contradicts itself: {text}")


def failures_of(
    answers: int, kinds: Sequence[int], unanswered: int = 0
) -> tuple[int, tuple[Remark, ...]]:
    """Return how many requests surely failed, with a remark where more of them may have.

    ``kinds`` are counts of answers that failed; one answer may be in several of them.
    """
    least = max(kinds)
    most = max(least, min(sum(kinds), answers))
    if least == most:
        return least + unanswered, ()
    text = (
        f"{least + unanswered:,} to {most + unanswered:,} requests failed: the tool counts them "
        "under several names, and one request may be in two"
    )
    return least + unanswered, (Remark(code=UNSURE, text=text),)


def check(path: Path, result: ToolResult) -> None:
    """Raise ImportRefused where no number of a file can be trusted."""
    problem, names = "", ("min", *map(share_name, SHARES), "max")
    if (result.failures or 0) > result.requests:
        problem = f"it has {result.failures:,} failures of {counted(result.requests, 'request')}"
        problem += result.where("failures", "requests")
    known = [name for name in names if not math.isnan(result.times_ms.get(name, math.nan))]
    for one, other in (*pairwise(known), ("min", "mean"), ("mean", "max")):
        less, more = (result.times_ms.get(name, math.nan) for name in (one, other))
        if less > more * ALIKE + max(result.steps.get(one, 0), result.steps.get(other, 0)):
            problem = f"its {one} is {number(less)} ms, and its {other} {number(more)} ms"
            problem += result.where(one, other)
    longest_s = result.times_ms.get("max", math.nan) / 1e3
    # Only a duration that the tool measured counts: Locust's begins anew with --reset-stats.
    room_s = result.steps.get("duration", math.nan) + 0.005
    if longest_s > result.duration_s * 1.1 + room_s:
        problem = f"its longest time is {number(longest_s)} s, and the whole load lasted "
        problem += f"{number(result.duration_s)} s{result.where('max', 'duration')}"
    if problem:
        raise refused(path, 0, f"{problem}: none of its numbers can be trusted")


def _contradictions(result: ToolResult) -> Iterator[Remark]:
    """Yield the remark on requests and duration that do not give the throughput."""
    room_s, room_rps = (result.steps.get(name, 0) for name in ("duration", "throughput"))
    low, high = (
        result.rated / max(result.duration_s + room, TINY) * slack
        for room, slack in ((room_s, 1 / ALIKE), (-room_s, ALIKE))
    )
    told = result.throughput_rps
    if told < low - room_rps or told > high + room_rps:
        yield contradiction(
            f"{counted(result.rated, 'request')} in {number(result.duration_s)} s are no "
            f"{number(told)} requests/s{result.where('requests', 'duration', 'throughput')}"
        )


def declared_responses(tool: str) -> list[Response]:
    """Return the responses of imported trials; each title names the tool."""
    titles = {"mean": "mean service time", "min": "shortest service time"}
    titles |= {share_name(share): f"p{share:g} of the service time" for share in SHARES}
    titles |= {"max": "longest service time"}
    listed = [
        ("failed_percent", "failed requests", "failed %", "failed requests", True),
        ("succeeded_rps", "throughput of successes", "succeeded/s", "throughput", True),
        ("throughput_rps", "throughput, failures too", "requests/s", "throughput", True),
        *(
            (f"service_{name}_ms", title, f"service {name.replace('_', '.')} ms", "service time",
             name in TYPICAL)
            for name, title in titles.items()
        ),
    ]  # fmt: skip
    units = {"percent": "%", "rps": "requests/s", "ms": "ms"}
    return [
        Response(
            name=f"{PREFIX}_{name}", title=f"{title} (as {tool} tells it)",
            unit=units[name.rpartition("_")[2]], heading=f"{PREFIX} {heading}", noun=noun,
            better="more" if name.endswith("_rps") else "less", typical=typical,
        )
        for name, title, heading, noun, typical in listed
    ]  # fmt: skip


def result_columns(result: ToolResult) -> dict[str, Any]:
    """Return the columns of a load; NaN, or -1 for counts, is a number that the tool lacks.

    Beside each number stands the resolution in which the tool tells it, in the same unit.
    """
    failures = math.nan if result.failures is None else result.failures
    unsure = any(remark.code == UNSURE for remark in result.remarks)
    succeeded = math.nan if unsure else (result.requests - failures) / (result.rated or math.nan)
    if result.requests and failures == result.requests:
        succeeded = 0.0
    step = result.steps.get
    values = {
        "failed_percent": (100 * failures / (result.requests or math.nan), 0.0),
        "succeeded_rps": (result.throughput_rps * succeeded, step("throughput", math.nan)),
        "throughput_rps": (result.throughput_rps, step("throughput", math.nan)),
        **{
            f"service_{name}_ms": (result.times_ms.get(name, math.nan), step(name, math.nan))
            for name in NAMES
        },
    }
    return {
        "requests": result.requests,
        f"{PREFIX}_failed_checks": result.checks[0],
        f"{PREFIX}_checks": result.checks[1],
        "errors": UNKNOWN if result.failures is None else result.failures,
        "unsent": UNKNOWN,
        "capped": UNKNOWN,
        f"{PREFIX}_duration_s": result.duration_s,
        **{f"{PREFIX}_{name}": value for name, (value, _) in values.items()},
        **{resolution_column(f"{PREFIX}_{name}"): size for name, (_, size) in values.items()},
    }


def not_judged(tool: str) -> Reason:
    """Return why an imported trial is neither valid nor invalid."""
    text = (
        "not judged: a load by itself is no trial; nobody knows in which order loads were sent, nor"
        " whether services started afresh between them"
        if tool == OWN
        else f"not judged: {tool} reports neither its own lag, stalls and CPU, nor facts of the "
        "machine"
    )
    return Reason(code="import.not_judged", side="unknown", text=text)


def remarks_of(result: ToolResult, tool: str) -> list[Remark]:
    """Return the remarks on a load's numbers."""
    text = f"{tool} has no planned instants: response time is not computed, times are service times"
    if tool == OWN:
        text = f"times are service times; {OWN_FILE} has response times, from planned instants"
    service_time = Remark(code="import.service_time", side="client", text=text)
    remarks = [*_contradictions(result), *result.remarks, service_time]
    shares = {share_name(share): share for share in SHARES}
    few = [
        f"p{shares[name]:g}"
        for name, value in result.times_ms.items()
        if name in shares and not math.isnan(value) and result.rated < needed_n(shares[name])
    ]
    if few:
        text = f"{result.rated:,} requests are too few for {', '.join(few)}, which {tool} reports"
        remarks.append(Remark(code="import.too_few", side="client", text=text))
    return remarks


def doubts(trials: pd.DataFrame) -> str:
    """Return in words what share of requests and checks failed, and contradictions."""
    told = trials[trials["errors"] >= 0]
    requests = int(told["requests"].sum())
    failed, checks = (
        int(trials.get(f"{PREFIX}_{name}", pd.Series(dtype=float)).fillna(0).sum())
        for name in ("failed_checks", "checks")
    )
    loads = sum(any(remark.code == CONTRADICTION for remark in row) for row in trials["warnings"])
    words = {
        f"{number(100 * told['errors'].sum() / max(requests, 1))}% failed": requests > 0,
        f"{number(100 * failed / max(checks, 1))}% of the checks failed": failed > 0,
        "unknown failures": len(told) < len(trials),
        f"a contradiction in {counted(loads, 'load')}": loads > 0,
    }
    return ", ".join(text for text, holds in words.items() if holds)
