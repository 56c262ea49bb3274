"""What keeps the runs of two sides from being compared, and what else differs between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pandas as pd

from perflab.analysis.doubts.refused_trials import Refused
from perflab.recordings import FREE_PARAMETERS, Run
from perflab.recordings.tables import NOT_JUDGED

AT_DIFFERENT_TIMES = "measured at different times"
# Probes before the load: what a service does to the machine is no drift of the machine.
DRIFTS = {"cpu_probe_before_ms": "CPU-speed probe", "flush_p50_us": "disk flush"}
MAX_DRIFT = 1.1
USED_STATES = ("valid", NOT_JUDGED)


def obstacles(a: Sequence[Run], b: Sequence[Run]) -> tuple[str, ...]:
    """Return why runs of two sides cannot be compared; empty if they can."""
    named = [
        (name if len(side) == 1 else f"{name}{place}", run)
        for name, side in (("A", a), ("B", b))
        for place, run in enumerate(side, 1)
    ]
    reasons = [
        f"run {run_id} is given {times} times; every run counts once"
        for run_id, times in Counter(run.run_id for _, run in named).items()
        if times > 1
    ]
    (first, model), *others = named
    for name, run in others:
        reasons += _obstacles_between(model, run, first, name)
    return tuple(dict.fromkeys(reasons))


def _obstacles_between(a: Run, b: Run, name_a: str, name_b: str) -> Iterator[str]:
    one, other = a.record, b.record
    if one.experiment != other.experiment:
        yield f"{name_a} is a run of '{one.experiment}', {name_b} of '{other.experiment}'"
        return
    if one.backend != other.backend:
        yield f"{name_a} ran on {one.backend}, {name_b} on {other.backend}"
    machines = one.environment.get("machine"), other.environment.get("machine")
    if machines[0] != machines[1]:
        yield f"the machine differs between {name_a} and {name_b}: {_difference(*machines)}"
    # What only one of them has is newer than the other, and had no other value then.
    names = (set(one.parameters) & set(other.parameters)) - set(FREE_PARAMETERS)
    for name in sorted(names):
        first, second = one.parameters[name], other.parameters[name]
        if first != second:
            yield f"parameter {name} is {first!r} in {name_a} and {second!r} in {name_b}"
    if {item.name for item in one.treatments} != {item.name for item in other.treatments}:
        yield f"{name_a} and {name_b} have different treatments"
    kinds = [run.design.kind if run.design else "trials" for run in (one, other)]
    if kinds[0] != kinds[1]:
        way_out = "measure both with -p design=trials"
        yield f"{name_a} was measured in {kinds[0]}, {name_b} in {kinds[1]}; {way_out}"


def times_apart(a: Iterable[float], b: Iterable[float]) -> str:
    """Return that runs at these times do not alternate, and what to do; empty if they do.

    They alternate if the first and second run in the order of time are one of A and one of B, the
    third and fourth too, and so on; where their number is odd, the last one may be of either.
    """
    ordered = sorted([*((time, "A") for time in a), *((time, "B") for time in b)])
    sides = [side for _, side in ordered]
    pairs = list(zip(sides[::2], sides[1::2], strict=False))
    if len(pairs) > 1 and all(one != other for one, other in pairs):
        return ""
    return (
        f"A and B were {AT_DIFFERENT_TIMES} ({' '.join(sides)}): a drift of the machine counts as "
        "change; measure them in the order A B B A A B, or as variants of one run"
    )


def middle_s(run: Run) -> float:
    """Return the middle of a run's time (s); its start if it has no end."""
    record = run.record
    began = datetime.fromisoformat(record.created_at)
    ended = datetime.fromisoformat(record.finished_at or record.created_at)
    return (began.timestamp() + ended.timestamp()) / 2


def drifts(a: Sequence[Run], b: Sequence[Run]) -> Iterator[str]:
    """Yield how the machine's own probes differ between two sides, where that is much."""
    trials = [pd.concat([run.valid_trials() for run in side]) for side in (a, b)]
    for name, what in DRIFTS.items():
        if not all(name in side for side in trials):
            continue
        before, after = (float(side[name].median()) for side in trials)
        if before > 0 and after > 0 and not 1 / MAX_DRIFT < after / before < MAX_DRIFT:
            yield f"{what}: median {before:.3g} in A, {after:.3g} in B"


def unequally_refused(a: Sequence[Run], b: Sequence[Run]) -> Iterator[str]:
    """Yield of which treatments one side has lost more of its trials than the other.

    A trial is refused for a reason that may go with its result, see
    :mod:`perflab.analysis.doubts.refused_trials`. Sides may have different numbers of runs, so the
    shares of refused trials are held against each other.
    """
    treatments: dict[str, list[str]] = {}
    trials = [pd.concat([run.current_trials() for run in side]) for side in (a, b)]
    for item in a[0].record.treatments:
        of_both = [side[side["treatment"] == item.name] for side in trials]
        refused = [int((~side["state"].isin(USED_STATES)).sum()) for side in of_both]
        if refused[0] * len(of_both[1]) != refused[1] * len(of_both[0]):
            text = Refused(dict(zip("AB", refused, strict=True)), 0, None).text
            treatments.setdefault(text, []).append(item.name)
    for text, names in treatments.items():
        yield f"{text} ({', '.join(names)}): without them a side may look better than it is"


def sources(a: Sequence[Run], b: Sequence[Run]) -> Iterator[str]:
    """Yield what of code, parameters and packages differs between the runs of two sides."""
    codes = [{run.record.code.get("fingerprint") for run in side} for side in (a, b)]
    for name, fingerprints in zip("AB", codes, strict=True):
        if len(fingerprints) > 1:
            yield f"the code that measures, or a service, changed between the runs of {name}"
    if codes[0] != codes[1]:
        yield "the code that measures, or a service, changed between the sides"
    asked = Counter(name for run in (*a, *b) for name in run.record.parameters)
    if newer := sorted(name for name, runs in asked.items() if runs < len(a) + len(b)):
        yield f"some of the runs are older than the parameters {', '.join(newer)}"
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
