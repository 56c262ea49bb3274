"""The most users that a configuration of the chat service holds within the published targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from perflab.experiments.chat.service import TARGETS_MS
from perflab.load.capacity import Capacity, Probe, search
from perflab.recordings import Run

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
        ``json``, ``no_deflate`` or ``best`` (see :data:`perflab.experiments.chat.rungs.BEYOND`).
    measure : callable
        ``perflab.run``; every probe is a run of its own, of one block and one rung. A probe with n
        users takes at least n / 4 seconds, in which they join.
    start, most : int
        First number of users, and the highest that may be tried.
    tolerance, repeats
        See :func:`perflab.load.capacity.search`.
    parameters : mapping, optional
        Of ``chat_ladder``, such as ``plateau_s`` or ``backend``.

    Returns
    -------
    Capacity
        Levels are users. A trial that is refused because of the client ends the search there.
    """

    def probe(level: float) -> Probe:
        rung = f"{configuration}_{int(level)}"
        words = {**(parameters or {}), "rungs": [rung], "blocks": 1}
        return judged(level, measure("chat_ladder", words))

    return search(probe, start, most, tolerance, repeats, whole=True)


def judged(level: float, run: Run) -> Probe:
    """Turn a run of one trial into a probe."""
    row = {str(name): value for name, value in run.trials().iloc[-1].items()}
    missed = []
    for name, most_ms in TARGETS_MS.items():
        found = float(row.get(name, math.nan))
        if not found <= most_ms:
            missed.append(f"{name} {found:.4g} > {most_ms:g}")
    reasons = tuple(map(str, row.get("reasons", ())))
    if row["state"] == "failed":
        missed = [*missed, *reasons]
    faults = reasons if row["state"] == "invalid" and not _by_server(reasons) else ()
    if _by_server(reasons):
        missed = [*missed, *reasons]
    values = {str(name): value for name, value in row.items()}
    return Probe(level, tuple(missed), faults, {"run": run.run_id, **values})


def _by_server(reasons: tuple[str, ...]) -> bool:
    """Say whether a trial was refused for what only an overloaded service does."""
    signs = ("WebSockets ended", "the server refused", "the server delivered", "requests failed")
    return bool(reasons) and all(any(sign in reason for sign in signs) for reason in reasons)
