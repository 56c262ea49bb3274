"""What became of requests until a load's end by failures, and of those then under way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from perflab.load.failure_causes import Cause, causes_among
from perflab.load.failure_stop import FailureStop, is_failure
from perflab.load.outcome import CODES
from perflab.load.result import LoadResult

UNSENT = CODES["unsent"]


@dataclass(frozen=True)
class Part:
    """Requests to one side of the stop; ``given_up`` were cut off by the load's own end."""

    requests: int
    successes: int
    failures: int
    given_up: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class AroundStop:
    """Requests that ended until the stop (warm-up included), after it, and those under way at it.

    ``until.failures`` is the number that ended the load, more only where several ended at the same
    instant. ``under_way`` were started and had not ended.
    """

    stop: FailureStop
    until: Part
    after: Part
    under_way: int


def around_stop(result: LoadResult) -> AroundStop | None:
    """Return what became of requests on both sides; None where failures did not end the load."""
    stop = result.failure_stop
    if stop is None:
        return None
    under_way = sum(
        int(((rows["started_ns"] <= stop.at_ns) & (rows["done_ns"] > stop.at_ns)
             & (rows["error"] != UNSENT)).sum())
        for rows in result.chunks()
    )  # fmt: skip
    return AroundStop(
        stop, _part(result, stop, late=False), _part(result, stop, late=True), under_way
    )


def _part(result: LoadResult, stop: FailureStop, *, late: bool) -> Part:
    def own() -> Iterator[np.ndarray]:
        for rows in result.chunks():
            yield rows[(rows["done_ns"] > stop.at_ns) == late]

    requests = successes = failures = 0
    for rows in own():
        requests += len(rows)
        successes += int((rows["error"] == 0).sum())
        failures += int(is_failure(rows["error"]).sum())
    found = causes_among(result, own())
    return Part(requests, successes, failures, requests - successes - failures, tuple(found))


def stop_shown(result: LoadResult) -> dict[str, Any]:
    """Return the member ``stop`` of a summary, where failures ended the load; else nothing."""
    found = around_stop(result)
    if found is None:
        return {}
    return {
        "stop": {
            "failures": found.stop.failures,
            "after_s": found.stop.after_s,
            "users": found.stop.users,
            "under_way": found.under_way,
            "until": asdict(found.until),
            "after": asdict(found.after),
        }
    }
