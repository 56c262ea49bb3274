"""A run plan: everything that the conductor needs, as data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from perflab.instruments import STANDARD
from perflab.instruments.instrument import NamedInstrument
from perflab.load.workload import Workload
from perflab.recordings import Contrast, Remark, Response, Steady, UntilDecided
from perflab.recordings.columns import TURN_COLUMNS, TURNS
from perflab.recordings.responses import COMMON
from perflab.stacks.plan import StackPlan
from perflab.trials.designs import (
    FEWEST_TREATMENTS,
    MOST_TREATMENTS,
    Design,
    not_cut,
    random_orders,
)


class Target(BaseModel):
    """A service that runs already, outside of the lab: ``http://host:port``.

    Load goes only to loopback and to the hosts in ``allowed``. The lab does nothing else with the
    service, and does not know its CPU and memory.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    allowed: tuple[str, ...] = ()


class Treatment(BaseModel):
    """One combination of levels, with its stack, its load and its instruments.

    The ``instruments`` decide what is measured besides the columns that every trial has. With a
    ``target`` the load goes there, and not to a node of the stack, which may be empty.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    label: str
    levels: Mapping[str, str]
    stack: StackPlan
    workload: Workload
    instruments: tuple[NamedInstrument, ...] = STANDARD
    target: Target | None = None


class RunPlan(BaseModel):
    """One run before it begins.

    ``steady`` says which messages show whether a trial was steady. Before every
    ``fresh_blocks``-th block the services start afresh (0: never). ``design`` says how the trials
    of a block share its time, or is settled when services run. With ``until_decided`` the run ends
    as soon as everything is decided, after ``blocks`` at most.
    """

    model_config = ConfigDict(frozen=True)

    experiment: str
    system: str = ""
    title: str
    question: str
    parameters: Mapping[str, Any]
    factors: Mapping[str, tuple[str, ...]]
    treatments: tuple[Treatment, ...]
    contrasts: tuple[Contrast, ...]
    blocks: int
    until_decided: UntilDecided | None = None
    seed: int
    fresh_blocks: int = 0
    design: Design = Design()
    warnings: tuple[Remark, ...] = ()
    responses: tuple[Response, ...] = COMMON
    steady: Steady = Steady()

    def settled(self, design: Design) -> RunPlan:
        """Return the plan with another design, and with the instruments that can be used in it."""
        treatments = self.treatments
        if design.shares_time:
            treatments = tuple(map(_alone, treatments))
        return self.model_copy(update={"design": design, "treatments": treatments})

    def where_it_can(self) -> RunPlan:
        """Return the plan; in whole trials if its design is ``auto`` and slices are impossible."""
        if self.design.kind != "auto":
            return self
        problems = self.settled(Design(kind="slices")).hindrances()
        return self.settled(Design(kind="trials", why=problems[0])) if problems else self

    def hindrances(self) -> list[str]:
        """Return a clause for each cause that keeps these treatments from sharing their time."""
        if not self.design.shares_time:
            return []
        causes = []
        count = len(self.treatments)
        if not FEWEST_TREATMENTS <= count <= MOST_TREATMENTS:
            numbers = f"{FEWEST_TREATMENTS} to {MOST_TREATMENTS}"
            causes.append(f"slices need {numbers} treatments, and there are {count}")
        for treatment in self.treatments:
            if why := not_cut(treatment.workload):
                causes.append(why)
            names = [type(item).__name__ for item in treatment.instruments if not item.shares_time]
            if names:
                causes.append(
                    f"{', '.join(names)} cannot tell treatments apart that share a block's time"
                )
        return list(dict.fromkeys(causes))

    def treatment(self, name: str) -> Treatment:
        """Return a treatment by name."""
        return next(item for item in self.treatments if item.name == name)

    @property
    def tables(self) -> dict[str, dict[str, str]]:
        """Return the tables besides the lab's own: the types of their columns, by table."""
        added = {
            name: dict(columns)
            for treatment in self.treatments
            for instrument in treatment.instruments
            for name, columns in instrument.tables.items()
        }
        return {**added, **({TURNS: dict(TURN_COLUMNS)} if self.design.shares_time else {})}

    def order(self) -> list[list[str]]:
        """Return the treatments' names in random order, per block (:func:`random_orders`)."""
        return random_orders([item.name for item in self.treatments], self.seed, self.blocks)


def _alone(treatment: Treatment) -> Treatment:
    """Return the treatment without standard instruments that would see what all of them do."""
    kept = [item for item in treatment.instruments if item.shares_time or item not in STANDARD]
    return treatment.model_copy(update={"instruments": tuple(kept)})


class Order(BaseModel):
    """The conductor's task: a new run of ``plan``, or the rest of the run ``resume``."""

    plan: RunPlan
    backend: str = "auto"
    runs: Path
    resume: Path | None = None
    wait_s: float = 0.0
