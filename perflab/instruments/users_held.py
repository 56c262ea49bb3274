"""The users that a service holds within objectives, searched by loads of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.load.capacity import (
    LONGEST_PROBE_S,
    Capacity,
    Probe,
    needed_s,
    probed,
    rate_of,
    search,
)
from perflab.load.workload import ClosedLoop, Objective, Workload
from perflab.recordings import Reason, Remark
from perflab.recordings.responses import at_least_column
from perflab.stacks.plan import StackPlan
from perflab.statistics.percentiles import needed_n

TABLE = "capacity_steps"
USERS, MISSED = "users_held", "users_missed"
COLUMNS = {
    "step": "int64",
    "users": "int64",
    "outcome": "string",
    "words": "string",
    "first_chunk_p95_ms": "double",
    "chunk_gap_p99_ms": "double",
    "p95_ms": "double",
}


class UsersHeld(Instrument):
    """Searches the most users that the trial's load may have before it misses an objective.

    It does so before the trial's own load, by loads of ``probe_s`` and more (after ``warmup_s``)
    that differ from that in their users alone: doubling from ``start`` up to ``most``, then halving
    until the bounds are ``tolerance`` apart (:func:`perflab.load.capacity.search`). Each is a load
    like any other: the generator checks itself, and a step in which it was the limit, or which
    nobody can be blamed for, is refused and made again. A trial has the search once; how sure its
    number is, the blocks say.

    ``users_held``: the most users that held; ``users_missed``: the least that did not. Where no
    number of users was surely too many (the end of the range, the client's own limit),
    ``users_held_at_least``. The table ``capacity_steps`` has every step. The services forget these
    loads before the trial's own begins.
    """

    tables: ClassVar = {TABLE: COLUMNS}

    objectives: tuple[Objective, ...] = Field(min_length=1)
    start: int = Field(ge=1, le=100_000)
    most: int = Field(ge=1, le=100_000)
    tolerance: float = Field(default=0.05, gt=0, le=1)
    probe_s: float = Field(gt=0, le=3600)
    warmup_s: float = Field(default=0.0, ge=0, le=3600)

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _UsersHeld(self, scene)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that a load has no users, or that the fewest give too few answers to judge."""
        if not isinstance(workload.arrivals, ClosedLoop) or workload.arrivals.stages:
            yield "users held: only a closed loop without stages has a number of users to search"
            return
        if self.start > self.most:
            yield f"users held: it begins at {self.start} users, and may try {self.most} at most"
        for objective in self.objectives:
            if objective.of != "response" and workload.request.stream is None:
                yield f"users held: {objective.text}: no answer is streamed"
            yield from self._too_few(objective, workload.arrivals)

    def _too_few(self, objective: Objective, arrivals: ClosedLoop) -> Iterable[str]:
        """Yield that a constant cycle gives too few answers; gaps are many in each of them."""
        if not arrivals.pacing_s or objective.of == "gap":
            return
        longest_s = max(self.probe_s, LONGEST_PROBE_S)
        answers = math.floor(self.start * longest_s / arrivals.pacing_s)
        if answers < (needed := needed_n(objective.percentile)):
            yield (
                f"users held: {objective.text} needs {needed} answers, and {self.start} users give "
                f"{answers} in {longest_s:g} s: begin with more users, or make probes longer"
            )


class _UsersHeld(Look):
    def __init__(self, asked: UsersHeld, scene: Scene) -> None:
        self._asked = asked
        self._scene = scene
        self._steps: list[Probe] = []
        self._found: Capacity | None = None

    def before(self) -> None:
        """Search; then let the services forget it."""
        asked = self._asked
        made = self._scene.workload.model_copy(update={"objectives": asked.objectives})

        def probe(level: float) -> Probe:
            step = self._too_small(made, level) or probed(
                self._scene.send, made, level, asked.probe_s, asked.warmup_s
            )
            self._steps.append(step)
            return step

        self._found = search(probe, asked.start, asked.most, asked.tolerance, repeats=1, whole=True)
        self._scene.residents.reset(self._scene.treatment)

    def _too_small(self, made: Workload, level: float) -> Probe | None:
        """Return that no load of this level would have the answers to be judged; None if it has."""
        rate = rate_of(made, level)
        if not rate or needed_s(made, rate) <= max(LONGEST_PROBE_S, self._asked.probe_s):
            return None
        text = f"{level:g} users are too few to judge the objectives; begin with more"
        return Probe(level, unclear=(Reason(code="capacity.too_few", text=text),))

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return the steps so far."""
        return {TABLE: steps_table(self._steps)} if self._steps else {}

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return what was found."""
        assert self._found is not None
        text = f"users held: {self._found.sentence}"
        told = [] if _is_known(self._found) else [Remark(code="capacity.bound", text=text)]
        return Observation(held_columns(self._found), self.left(), warnings=told)


def _is_known(capacity: Capacity) -> bool:
    return capacity.limit == "server" and bool(capacity.low) and capacity.high is not None


def held_columns(capacity: Capacity) -> dict[str, float]:
    """Return the columns of :class:`UsersHeld`; all are NaN where not even the first level held."""
    columns = {
        USERS: capacity.low if _is_known(capacity) else math.nan,
        MISSED: capacity.high if capacity.high and capacity.limit == "server" else math.nan,
        "capacity_steps": float(len(capacity.probes)),
        "capacity_steps_refused": float(sum(step.spoilt for step in capacity.probes)),
    }
    if capacity.low and not _is_known(capacity):
        columns[at_least_column(USERS)] = capacity.low
    return columns


def steps_table(steps: Sequence[Probe]) -> pd.DataFrame:
    """Return a row per step, in the order in which they were made."""
    rows = [
        {
            "step": number,
            "users": int(step.level),
            "outcome": _outcome(step),
            "words": "; ".join(map(str, step.faults or step.unclear or step.missed)),
            "first_chunk_p95_ms": _number(step.shown, "first_chunk_ms", "p95"),
            "chunk_gap_p99_ms": _number(step.shown, "chunk_gap_ms", "p99"),
            "p95_ms": _number(step.shown, "response_time_ms", "p95"),
        }
        for number, step in enumerate(steps)
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS])


def _outcome(step: Probe) -> str:
    """Say whether objectives were held or missed, or its numbers may not be used."""
    if step.spoilt:
        return "refused"
    return "missed" if step.missed else "held"


def _number(shown: Mapping[str, Any], times: str, share: str) -> float:
    value = shown.get(times, {}).get(share)
    return math.nan if value is None else float(value)
