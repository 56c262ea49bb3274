"""What an experiment is: a question, parameters, treatments, and published results."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from perflab.parameters import Parameters, check
from perflab.recordings import Contrast
from perflab.trials.plan import RunPlan, Treatment


class RunParameters(Parameters):
    """Parameters that every experiment has.

    ``seed`` None draws one and records it. ``fresh_blocks`` starts the services afresh before every
    n-th block (0: never). Two processes of one program differ by 1 to 2% for as long as they live;
    afresh in every block, that is noise, and not an effect of the treatment (``lab_check`` shows
    it; T. Kalibera, R. Jones, ISMM 2013). ``from_run`` shows an existing run without measuring;
    ``resume`` finishes one.
    """

    backend: Literal["auto", "docker", "process"] = "auto"
    blocks: int = Field(default=6, ge=1, le=1000)
    seed: int | None = Field(default=None, ge=0)
    fresh_blocks: int = Field(default=1, ge=0)
    from_run: str | None = None
    resume: str | None = None
    wait_s: float = Field(default=0.0, ge=0)


@dataclass(frozen=True)
class Experiment:
    """A question with factors, a workload and published results to compare with."""

    name: str
    title: str
    question: str
    parameters: type[RunParameters]
    treatments: Callable[[Any], Sequence[Treatment]]
    factors: Callable[[Any], Mapping[str, tuple[str, ...]]]
    contrasts: Callable[[Any], Sequence[Contrast]]
    warnings: Callable[[Any], Sequence[str]] = lambda _: ()

    def check(self, values: Mapping[str, Any]) -> RunParameters:
        """Validate parameters; raises ParameterError with every problem."""
        return check(self.parameters, values, f"experiment '{self.name}'")

    def plan(self, parameters: RunParameters) -> RunPlan:
        """Return the plan of a run with these parameters."""
        seed = parameters.seed if parameters.seed is not None else secrets.randbelow(2**31)
        recorded = parameters.model_dump(mode="json", exclude={"from_run", "resume", "wait_s"})
        return RunPlan(
            experiment=self.name,
            title=self.title,
            question=self.question,
            parameters={**recorded, "seed": seed},
            factors=self.factors(parameters),
            treatments=tuple(self.treatments(parameters)),
            contrasts=tuple(self.contrasts(parameters)),
            blocks=parameters.blocks,
            fresh_blocks=parameters.fresh_blocks,
            seed=seed,
            warnings=tuple(self.warnings(parameters)),
        )
