"""Is a proxy better when it passes chunks through, and what can a load test tell of it?"""

from __future__ import annotations

from perflab.recordings import Contrast
from perflab.systems.llm import claims, streaming
from perflab.systems.llm.parameters import StreamingParameters, rungs
from perflab.systems.llm.rungs import published_settings
from perflab.trials.experiment import Experiment

# The parameters of the published stress test that the study states.
OF_STRESS = ("stress_users", "interval_s", "failures", "ramp_s", "chunks_for_success")


def _contrasts(parameters: StreamingParameters) -> list[Contrast]:
    stated = published_settings()
    as_published = all(getattr(parameters, name) == stated[name] for name in OF_STRESS)
    return claims.contrasts(rungs(parameters), parameters.limits, as_published)


EXPERIMENT = Experiment(
    name="llm_streaming",
    title="LLM proxy: streams, pacing and failures",
    question="Does a streaming proxy get better when it passes chunks through instead of making "
    "them anew, and what do pacing and a failure threshold do to the answer?",
    parameters=StreamingParameters,
    treatments=lambda parameters: streaming.LADDER.treatments(parameters, rungs(parameters)),
    factors=lambda parameters: streaming.LADDER.factors(parameters, rungs(parameters)),
    contrasts=_contrasts,
    warnings=streaming.remarks_on,
)
