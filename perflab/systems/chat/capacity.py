"""The most users that a configuration of the chat service holds within the published targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from perflab.load.capacity import Capacity, Probe, search
from perflab.recordings import Reason, Run, fault
from perflab.systems.chat.analysis.held import targets_ms

QUICK: Mapping[str, Any] = {"ramp_s": 20.0, "bcrypt_rounds": 4}
Measure = Callable[[str, Mapping[str, Any]], Run]


def most_users(
    configuration: str,
    measure: Measure,
    start: int = 250,
    most: int = 2000,
    tolerance: float = 0.1,
    repeats: int = 1,
    parameters: Mapping[str, Any] | None = None,
) -> Capacity:
    """Search the most users whose deliveries meet all three targets, by doubling and bisection.

    Parameters
    ----------
    configuration : str
        ``json``, ``no_deflate`` or ``best`` (see :data:`perflab.systems.chat.rungs.BEYOND`).
    measure : callable
        ``perflab.run``; every probe is a run of its own, of one block and one rung.
    start, most : int
        First number of users, and the highest that may be tried.
    tolerance, repeats
        See :func:`perflab.load.capacity.search`.
    parameters : mapping, optional
        Of ``chat_ladder``, such as ``plateau_s`` or ``backend``. Users join in haste and log in
        cheaply (``QUICK``) unless it says otherwise; their actions are as published.

    Returns
    -------
    Capacity
        Levels are users. A trial that is refused ends the search there, unless the service alone is
        at fault: then it held too many.
    """

    def probe(level: float) -> Probe:
        rung = f"{configuration}_{int(level)}"
        words = {**QUICK, **(parameters or {}), "rungs": [rung], "blocks": 1}
        return judged(level, measure("chat_ladder", words))

    return search(probe, start, most, tolerance, repeats, whole=True)


def judged(level: float, run: Run) -> Probe:
    """Turn a run of one trial into a probe.

    A trial that was refused, or failed, says something of the service only where all that is held
    against it is the service's own (see :func:`perflab.recordings.fault`).
    """
    row = {str(name): value for name, value in run.trials().iloc[-1].items()}
    reasons = tuple(row["reasons"])
    whose = fault(reasons) if row["state"] != "valid" else "server"
    shown = {"run": run.run_id, **row}
    if whose == "client":
        return Probe(level, faults=reasons, shown=shown)
    if whose == "unknown":
        return Probe(level, unclear=reasons, shown=shown)
    found = {name: float(row.get(name, math.nan)) for name in targets_ms()}
    missed = tuple(
        f"{name} {found[name]:.4g} > {most_ms:g}"
        for name, most_ms in targets_ms().items()
        if found[name] > most_ms
    )
    missed = (*missed, *map(str, reasons))
    small = tuple(
        Reason(code="chat.small_sample", text=f"n is too small for {name}")
        for name, value in found.items()
        if math.isnan(value)
    )
    return Probe(level, missed, unclear=() if missed else small, shown=shown)
