"""What does a connection per request cost, and which published phase changes anything?"""

from __future__ import annotations

from perflab.recordings import Contrast
from perflab.systems.metricstream import claims, lifecycle
from perflab.systems.metricstream.lifecycle import LifeCycleParameters, rungs
from perflab.trials.experiment import Experiment


def _contrasts(parameters: LifeCycleParameters) -> list[Contrast]:
    return claims.contrasts(rungs(parameters))


EXPERIMENT = Experiment(
    name="connection_lifecycle",
    title="MetricStream: the life cycle of a connection",
    question="What does a connection for every request cost, and which of the published phases "
    "changes anything while connections are made anew?",
    parameters=LifeCycleParameters,
    treatments=lambda parameters: lifecycle.LADDER.treatments(parameters, rungs(parameters)),
    factors=lambda parameters: lifecycle.LADDER.factors(parameters, rungs(parameters)),
    contrasts=_contrasts,
    warnings=lifecycle.remarks,
)
