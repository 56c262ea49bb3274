"""What an experiment is: a question, treatments, and published results to compare with."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from perflab.analysis.findings import can_be_decided
from perflab.errors import ExperimentError, ParameterError, PerflabError
from perflab.parameters import check, sentences
from perflab.recordings import Contrast, ContrastPair, Remark, Response
from perflab.recordings.responses import COMMON
from perflab.stacks.plan import StackPlan
from perflab.stacks.spec import unchecked
from perflab.trials.plan import RunPlan, Treatment, obstacles, too_few_blocks
from perflab.trials.run_parameters import OF_THE_CALL, UNTIL_DECIDED, RunParameters

CLAIMS = (Contrast.__name__, ContrastPair.__name__)


def _unchecked(treatments: Sequence[Treatment]) -> list[Remark]:
    names = dict.fromkeys(node.service for item in treatments for node in item.stack.nodes)
    return [Remark(code="settings.unchecked", text=text) for text in unchecked(names)]


@dataclass(frozen=True)
class Experiment:
    """A question with factors, a workload and published results to compare with.

    With ``main_job`` the experiment is part of 'perflab lab', which runs it with these parameters,
    and puts the views that ``pictures`` names beside its answers. ``system`` and ``responses`` need
    not be given: they are then those of the system that holds the experiment.
    """

    name: str
    title: str
    question: str
    parameters: type[RunParameters]
    treatments: Callable[[Any], Sequence[Treatment]]
    contrasts: Callable[[Any], Sequence[Contrast]]
    warnings: Callable[[Any], Sequence[Remark]] = lambda _: ()
    main_job: Mapping[str, Any] | None = None
    pictures: Sequence[str] = ("effect",)
    system: str = ""
    responses: Sequence[Response] = COMMON

    def check(self, values: Mapping[str, Any]) -> RunParameters:
        """Validate parameters; :meth:`plan` tells whether a run with them can begin.

        Raises ParameterError with every problem.
        """
        return check(self.parameters, values, self._subject)

    def plan(self, parameters: RunParameters) -> RunPlan:
        """Return the plan of a run with these parameters.

        A seed that is left open is drawn anew every time.

        Raises ParameterError with every problem that only a service's limits or the load tell, and
        ExperimentError where the experiment itself is wrong.
        """
        recorded = parameters.model_dump(mode="json", exclude=set(OF_THE_CALL))
        blocks = parameters.planned_blocks
        try:
            contrasts = tuple(self.contrasts(parameters))
            treatments = tuple(self.treatments(parameters))
            plan = RunPlan(
                experiment=self.name,
                system=self.system,
                responses=tuple(self.responses),
                title=self.title,
                question=self.question,
                parameters=recorded,
                factors=self.levels(parameters, treatments),
                treatments=treatments,
                contrasts=contrasts,
                blocks=blocks,
                until_decided=parameters.until_decided,
                fresh_blocks=parameters.fresh_blocks,
                finds_warmup=parameters.finds_warmup,
                design=parameters.block_design,
                seed=parameters.seed or 0,
                why=bool(recorded.get("why")),
                metrics=str(recorded.get("metrics", "")),
                warnings=(
                    *self.warnings(parameters),
                    *too_few_blocks(contrasts, blocks, parameters.fresh_blocks),
                    *_unchecked(treatments),
                ),
            )
        except ValidationError as error:
            raise self._fault(error) from None
        plan = plan.settled(plan.design)
        problems = [*obstacles(plan), *self._nothing_to_decide(plan)]
        if problems:
            raise ParameterError(self._subject, problems)
        plan = plan.where_it_can()
        return plan.seeded(secrets.randbelow(2**31)) if parameters.seed is None else plan

    def levels(
        self, parameters: RunParameters, treatments: Sequence[Treatment] = ()
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the levels of every factor of a run with these parameters.

        ``treatments`` are those of the run, if they are known already. Raises ParameterError
        where a service's limits do not allow the parameters.
        """
        try:
            return factors_of(treatments or self.treatments(parameters))
        except ValidationError as error:
            raise self._fault(error) from None

    @staticmethod
    def _nothing_to_decide(plan: RunPlan) -> list[str]:
        if plan.until_decided is None or any(map(can_be_decided, plan.contrasts)):
            return []
        return [
            f"blocks = {UNTIL_DECIDED}: with these parameters there is no claim that could be "
            "decided; give a number of blocks"
        ]

    @property
    def _subject(self) -> str:
        return f"experiment '{self.name}'"

    def _fault(self, error: ValidationError) -> PerflabError:
        """Return a ParameterError, or an ExperimentError for a faulty contrast."""
        problems = [f"{error.title}: {sentence}" for sentence in sentences(error)]
        if error.title in CLAIMS:
            place = inspect.getsourcefile(self.contrasts) or "its module"
            return ExperimentError(f"{self._subject} ({place}): {'; '.join(problems)}")
        return ParameterError(self._subject, problems)


def factors_of(treatments: Sequence[Treatment]) -> dict[str, tuple[str, ...]]:
    """Return the levels of every factor, in the order in which treatments first have them."""
    factors: dict[str, list[str]] = {}
    for treatment in treatments:
        for factor, level in treatment.levels.items():
            factors.setdefault(factor, []).append(level)
    return {factor: tuple(dict.fromkeys(levels)) for factor, levels in factors.items()}


@dataclass(frozen=True)
class ReadyStack:
    """A stack that ``perflab stack up NAME`` starts; the ``hint`` is printed when it is up."""

    name: str
    plan: Callable[[], StackPlan]
    hint: str = ""
