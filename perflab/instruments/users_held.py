"""Search the most users that a service holds within objectives, by loads of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import pandas as pd
from pydantic import Field

from perflab.instruments.instrument import Instrument, Load, Observation, Sensor
from perflab.load.capacity import LONGEST_PROBE_S, Capacity, Probe, probed, search
from perflab.load.workload import ClosedLoop, Objective, Workload
from perflab.recordings import Remark
from perflab.recordings.responses import at_least_column
from perflab.stacks.plan import StackPlan
from perflab.statistics.quantiles import needed_n

TABLE = "capacity_steps"
USERS, MISSED = "users_held", "users_missed"
SEARCH_COLUMNS = {
    "step": "int64",
    "users": "int64",
    "outcome": "string",
    "words": "string",
    "first_chunk_p95_ms": "double",
    "chunk_gap_p99_ms": "double",
    "p95_ms": "double",
}


class _UsersHeld(Sensor["UsersHeld"]):
    def before(self) -> None:
        """Search, then reset the services."""
        settings = self.settings
        workload = self.scene.workload.model_copy(update={"objectives": settings.objectives})

        def probe(level: float) -> Probe:
            step = probed(self.scene.send, workload, level, settings.probe_s, settings.warmup_s)
            self.rows.append(step)
            return step

        self._capacity = search(
            probe, settings.start, settings.most, settings.tolerance, repeats=1, whole=True
        )
        self.scene.residents.reset(self.scene.treatment)

    def left(self) -> Mapping[str, pd.DataFrame]:
        return {TABLE: steps_table(self.rows)} if self.rows else {}

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return the columns of the search, with a warning where the capacity is only a bound."""
        text = f"users held: {self._capacity.sentence}"
        warnings = [] if _is_known(self._capacity) else [Remark(code="capacity.bound", text=text)]
        return Observation(held_columns(self._capacity), self.left(), warnings=warnings)


class UsersHeld(Instrument):
    """Searches the most users that the trial's load may have before it misses an objective.

    The search (:func:`perflab.load.capacity.search`) runs before the trial's own load. Its loads
    last ``probe_s`` or more (after ``warmup_s``) and differ from the trial's in their users alone.
    A step that the generator limited, or whose failure has no known side, is refused and repeated.

    ``users_held`` is the most users that held, ``users_missed`` the fewest that did not. Where no
    number of users was surely too many (the end of the range, the client's own limit), there is
    ``users_held_at_least`` instead. The table ``capacity_steps`` has every step.
    """

    at_work: ClassVar = _UsersHeld
    tables: ClassVar = {TABLE: SEARCH_COLUMNS}

    objectives: tuple[Objective, ...] = Field(min_length=1)
    start: int = Field(ge=1, le=100_000)
    most: int = Field(ge=1, le=100_000)
    tolerance: float = Field(default=0.05, gt=0, le=1)
    probe_s: float = Field(gt=0, le=3600)
    warmup_s: float = Field(default=0.0, ge=0, le=3600)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Yield a problem where a load has no users, or the fewest give too few answers."""
        if not isinstance(workload.arrivals, ClosedLoop):
            yield "users held: the search needs a closed loop"
            return
        if self.start > self.most:
            yield f"users held: start = {self.start} users is above most = {self.most}"
        for objective in self.objectives:
            if objective.of != "response" and workload.request.stream is None:
                yield f"users held: {objective}: no answer is streamed"
            yield from self._too_few(objective, workload.arrivals)

    def _too_few(self, objective: Objective, arrivals: ClosedLoop) -> Iterable[str]:
        """Yield a problem where paced users give too few answers; gaps are many in each answer."""
        if not arrivals.pacing_s or objective.of == "gap":
            return
        longest_s = max(self.probe_s, LONGEST_PROBE_S)
        answers = math.floor(self.start * longest_s / arrivals.pacing_s)
        if answers < (needed := needed_n(objective.percentile)):
            yield (
                f"users held: {objective} needs {needed} answers, and {self.start} users give "
                f"{answers} in {longest_s:g} s: begin with more users, or make probes longer"
            )


def _is_known(capacity: Capacity) -> bool:
    return capacity.limit == "server" and bool(capacity.low) and capacity.high is not None


def held_columns(capacity: Capacity) -> dict[str, float]:
    """Return the columns of :class:`UsersHeld`; NaN where not even the first level held."""
    columns = {
        USERS: capacity.low if _is_known(capacity) else math.nan,
        MISSED: capacity.high if capacity.high and capacity.limit == "server" else math.nan,
        "capacity_steps": float(len(capacity.probes)),
    }
    if capacity.low and not _is_known(capacity):
        columns[at_least_column(USERS)] = capacity.low
    return columns


def steps_table(steps: Sequence[Probe]) -> pd.DataFrame:
    """Return a table with a row per step, in the order of the search."""
    rows = [
        {
            "step": number,
            "users": int(step.level),
            "outcome": _outcome(step),
            "words": "; ".join(map(str, step.faults or step.unclear or step.missed)),
            "first_chunk_p95_ms": step.time_ms("first_chunk", "p95"),
            "chunk_gap_p99_ms": step.time_ms("chunk_gap", "p99"),
            "p95_ms": step.time_ms("response_time", "p95"),
        }
        for number, step in enumerate(steps)
    ]
    return pd.DataFrame(rows, columns=[*SEARCH_COLUMNS])


def _outcome(step: Probe) -> str:
    """Return ``held``, ``missed``, or ``refused`` where the step's numbers cannot be used."""
    if step.spoilt:
        return "refused"
    return "missed" if step.missed else "held"
