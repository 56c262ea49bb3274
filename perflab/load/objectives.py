"""Whether a finished load held its objectives, as far as its numbers can tell."""

from __future__ import annotations

import math
from typing import Any

from perflab.load.result import LoadResult
from perflab.load.times import times_of
from perflab.load.workload import Objective
from perflab.percentiles import needed_n


def judged(objective: Objective, result: LoadResult) -> dict[str, Any]:
    """Judge an objective over the whole measure stage; ``held`` is None where ``why`` keeps it so.

    What is a bound can be a miss, and never be held; so can a time that is partly the client's.
    """
    share, below_ms = objective.percentile, objective.below_ms
    response = times_of(result)
    number = response.numbers((share,))[f"p{share:g}"]
    value, why = number.value, ""
    held: bool | None = None
    if number.bound.low - number.client_ms > below_ms:
        held = False
    elif number.value <= below_ms:
        held = True
    elif not math.isnan(number.at_least):
        why = f"{len(response.elapsed)} requests were cut off before their end"
    elif math.isnan(value):
        why = f"{len(response.known)} successes of {needed_n(share)} needed"
    else:
        why = f"up to {number.client_ms:.2g} ms of {value:.4g} ms are the client's own"
    return {
        "objective": objective.text,
        "percentile": share,
        "below_ms": below_ms,
        "found_ms": None if math.isnan(value) else value,
        "at_least_ms": None if math.isnan(number.at_least) else number.at_least,
        "held": False if objective.text in result.missed else held,
        "why": why,
    }
