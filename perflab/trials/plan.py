"""A run plan: everything the conductor needs, as data that can be written down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from perflab.errors import ParameterError
from perflab.load.workload import Workload
from perflab.recordings import Contrast
from perflab.stacks.plan import StackPlan

WATCHED_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Profiling(BaseModel):
    """A profiler beside the load: which node it looks at, and how often a second.

    ``watch`` names functions whose part the trial's row shall hold (see
    :mod:`perflab.trials.watching`): a short name, and a regular expression that is searched for in
    frames as py-spy writes them, ``Connection.write (chat/connection.py)``.

    Raises
    ------
    ParameterError
        A name cannot be part of a column's name, or a pattern is none.
    """

    model_config = ConfigDict(frozen=True)

    node: str
    rate_hz: int
    watch: Mapping[str, str] = Field(default_factory=dict)

    @field_validator("watch")
    @classmethod
    def _can_be_watched(cls, watch: Mapping[str, str]) -> Mapping[str, str]:
        problems = [
            problem for name, pattern in watch.items() if (problem := _obstacle(name, pattern))
        ]
        if problems:
            raise ParameterError("watched functions", problems)
        return watch


def _obstacle(name: str, pattern: str) -> str:
    """Return why a function cannot be watched so; empty where it can."""
    if not WATCHED_NAME.fullmatch(name):
        return f"name '{name}': small letters, digits and _ are allowed, a letter first"
    if not pattern:
        return f"'{name}': its pattern is empty and would match every frame; name a function"
    try:
        re.compile(pattern)
    except re.error as error:
        return f"'{name}': the pattern '{pattern}' is no regular expression: {error}"
    return ""


class Treatment(BaseModel):
    """One combination of levels, the stack it needs, the load it gets, and who looks on."""

    model_config = ConfigDict(frozen=True)

    name: str
    label: str
    levels: Mapping[str, str]
    stack: StackPlan
    workload: Workload
    profiling: Profiling | None = None


class RunPlan(BaseModel):
    """One run before it begins.

    ``seed`` decides the order of the treatments in every block; ``cooldown_s`` is the rest after a
    trial; before every ``fresh_blocks``-th block the services are started afresh (0: never).
    """

    model_config = ConfigDict(frozen=True)

    experiment: str
    title: str
    question: str
    parameters: Mapping[str, Any]
    factors: Mapping[str, tuple[str, ...]]
    treatments: tuple[Treatment, ...]
    contrasts: tuple[Contrast, ...]
    blocks: int
    seed: int
    cooldown_s: float = 0.1
    fresh_blocks: int = 0
    warnings: tuple[str, ...] = ()

    def treatment(self, name: str) -> Treatment:
        """Return a treatment by name."""
        return next(item for item in self.treatments if item.name == name)

    def order(self) -> list[list[str]]:
        """Return, per block, the treatments' names in random order.

        Every block is permuted on its own with a generator seeded by (seed, block), so that the
        order of a block does not depend on how many there are.
        """
        names = [treatment.name for treatment in self.treatments]
        return [
            [
                names[index]
                for index in np.random.default_rng((self.seed, block)).permutation(len(names))
            ]
            for block in range(self.blocks)
        ]
