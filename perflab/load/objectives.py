"""Whether a finished load held its objectives, as far as its numbers can tell."""

from __future__ import annotations

import math
from typing import Any

from perflab.load.chunk_times import times_of_chunks
from perflab.load.result import LoadResult
from perflab.load.times import Times, known, times_of
from perflab.load.workload import Objective
from perflab.percentiles import needed_n


def judged(objective: Objective, result: LoadResult) -> dict[str, Any]:
    """Judge an objective over the whole measure stage; ``held`` is None where ``why`` keeps it so.

    What is a bound can be a miss, and never be held; so can a time that is partly the client's.
    """
    share, below_ms = objective.percentile, objective.below_ms
    times = _times(objective, result)
    if times is None:
        return {
            **_found(objective, math.nan, math.nan),
            "held": None,
            "why": "nothing was streamed",
        }
    number = times.numbers((share,))[f"p{share:g}"]
    value, why = number.value, ""
    held: bool | None = None
    if number.bound.low - number.client_ms > below_ms:
        held = False
    elif number.value <= below_ms:
        held = True
    elif not math.isnan(number.at_least):
        why = f"{len(times.elapsed)} requests were cut off before their end"
    elif math.isnan(value):
        what = "gaps" if objective.of == "gap" else "successes"
        why = f"{len(times.known)} {what} of {needed_n(share)} needed"
    else:
        why = f"up to {number.client_ms:.2g} ms of {value:.4g} ms are the client's own"
    return {
        **_found(objective, value, number.at_least),
        "held": False if objective.text in result.missed else held,
        "why": why,
    }


def _times(objective: Objective, result: LoadResult) -> Times | None:
    """Return the times that an objective is about; None of streams where nothing was streamed."""
    if objective.of == "response":
        return times_of(result)
    found = times_of_chunks(result)
    if found is None:
        return None
    return found.first if objective.of == "ttft" else found.gaps


def _found(objective: Objective, value: float, at_least: float) -> dict[str, Any]:
    return {
        "objective": objective.text,
        "percentile": objective.percentile,
        "below_ms": objective.below_ms,
        "found_ms": known(value),
        "at_least_ms": known(at_least),
    }
