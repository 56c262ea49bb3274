"""What does a connection per request cost, and which published phase changes anything?"""

from __future__ import annotations

from collections.abc import Sequence

from perflab.experiments.experiment import Experiment
from perflab.recordings import Contrast, Remark
from perflab.systems.metricstream import claims, lifecycle
from perflab.systems.metricstream.lifecycle import LifeCycleParameters
from perflab.systems.metricstream.rungs import Rung, chosen


def _rungs(parameters: LifeCycleParameters) -> dict[str, Rung]:
    return chosen(parameters.sets, parameters.users)


def _contrasts(parameters: LifeCycleParameters) -> list[Contrast]:
    return claims.contrasts(_rungs(parameters))


def _warnings(parameters: LifeCycleParameters) -> Sequence[Remark]:
    return lifecycle.remarks(parameters, _rungs(parameters))


EXPERIMENT = Experiment(
    name="connection_lifecycle",
    title="MetricStream: the life cycle of a connection",
    question="What does a connection for every request cost, and which of the published phases "
    "changes anything while connections are made anew?",
    parameters=LifeCycleParameters,
    treatments=lambda parameters: lifecycle.LADDER.treatments(parameters, _rungs(parameters)),
    factors=lambda parameters: lifecycle.LADDER.factors(parameters, _rungs(parameters)),
    contrasts=_contrasts,
    warnings=_warnings,
)
