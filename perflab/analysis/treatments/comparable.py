"""May runs be compared, and what differs between them besides what was measured?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from perflab.recordings import FREE_PARAMETERS, Run

# The probe before the load: what a service does to the machine is not a drift of it.
DRIFTS = {"cpu_probe_before_ms": "CPU-speed probe", "flush_p50_us": "disk flush"}
MAX_DRIFT = 1.1


def obstacles(a: Sequence[Run], b: Sequence[Run]) -> tuple[str, ...]:
    """Return why runs of two sides cannot be compared; empty where they can."""
    named = [(f"A{place or ''}", run) for place, run in _numbered(a)]
    named += [(f"B{place or ''}", run) for place, run in _numbered(b)]
    found = [
        f"run {run_id} is given {times} times; every run counts once"
        for run_id, times in Counter(run.run_id for _, run in named).items()
        if times > 1
    ]
    (first, model), *others = named
    for name, run in others:
        found += _between(model, run, first, name)
    return tuple(dict.fromkeys(found))


def _numbered(side: Sequence[Run]) -> Iterator[tuple[int, Run]]:
    """Yield runs with numbers from 1 on; a single one has none."""
    for place, run in enumerate(side, 1):
        yield (place if len(side) > 1 else 0), run


def _between(a: Run, b: Run, name_a: str, name_b: str) -> Iterator[str]:
    one, other = a.record, b.record
    if one.experiment != other.experiment:
        yield f"{name_a} is of '{one.experiment}', {name_b} of '{other.experiment}'"
        return
    if one.backend != other.backend:
        yield f"{name_a} ran on {one.backend}, {name_b} on {other.backend}"
    machines = one.environment.get("machine"), other.environment.get("machine")
    if machines[0] != machines[1]:
        yield f"the machine differs between {name_a} and {name_b}: {_difference(*machines)}"
    names = {*one.parameters, *other.parameters} - set(FREE_PARAMETERS)
    for name in sorted(names):
        first, second = one.parameters.get(name), other.parameters.get(name)
        if first != second:
            yield f"parameter {name} is {first!r} in {name_a} and {second!r} in {name_b}"
    if {item.name for item in one.treatments} != {item.name for item in other.treatments}:
        yield f"{name_a} and {name_b} have different treatments"


def notes(a: Sequence[Run], b: Sequence[Run]) -> tuple[str, ...]:
    """Return what else differs between the sides, or within one."""
    return (*_order(a, b), *_drifts(a, b), *_sources(a, b))


def _order(a: Sequence[Run], b: Sequence[Run]) -> Iterator[str]:
    order = sorted(
        (run.record.created_at, name) for name, side in (("A", a), ("B", b)) for run in side
    )
    changes = sum(one != other for (_, one), (_, other) in pairwise(order))
    if changes < 2:
        way_out = "; run A and B in turn" if len(order) > 2 else ""
        yield f"one side ran after the other: a drift of the machine counts as change{way_out}"


def _drifts(a: Sequence[Run], b: Sequence[Run]) -> Iterator[str]:
    trials = [pd.concat([run.valid_trials() for run in side]) for side in (a, b)]
    for name, what in DRIFTS.items():
        if not all(name in own for own in trials):
            continue
        before, after = (float(own[name].median()) for own in trials)
        if before > 0 and after > 0 and not 1 / MAX_DRIFT < after / before < MAX_DRIFT:
            yield f"{what}: median {before:.3g} in A, {after:.3g} in B"


def _sources(a: Sequence[Run], b: Sequence[Run]) -> Iterator[str]:
    codes = [{run.record.code.get("fingerprint") for run in side} for side in (a, b)]
    for name, own in zip("AB", codes, strict=True):
        if len(own) > 1:
            yield f"the code that measures, or a service, changed between the runs of {name}"
    if codes[0] != codes[1]:
        yield "the code that measures, or a service, changed between the sides"
    first = a[0].record.environment.get("packages")
    for run in [*a[1:], *b]:
        packages = run.record.environment.get("packages")
        if packages != first:
            yield f"packages differ: {_difference(first, packages)}"
            return


def _difference(first: Any, second: Any) -> str:
    if isinstance(first, dict) and isinstance(second, dict):
        keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
        return ", ".join(f"{key} {first.get(key)} and {second.get(key)}" for key in keys)
    return f"{first} and {second}"
