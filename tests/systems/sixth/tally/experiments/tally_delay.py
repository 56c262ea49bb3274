"""How much does a delay cost a service that takes in bodies?"""

from pydantic import Field
from sixth.tally.stacks import stack
from sixth.tally.taking import Taken

from perflab.instruments import STANDARD
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.recordings import Contrast, published
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import RunParameters

# All byte values, so that no text could pass for it.
BODY = bytes(range(256)) * 4
MOST_BYTES = 4096
DELAYS_MS = {"no": 0.0, "yes": 20.0, "too_large": 0.0}


class TallyParameters(RunParameters):
    """Parameters of the study of delays."""

    requests: int = Field(default=40, ge=10, le=10_000, description="requests of each trial")


def _treatments(parameters: TallyParameters) -> list[Treatment]:
    arrivals = ClosedLoop(users=2, requests=parameters.requests, warmup_requests=4)
    treatments = []
    for level, delay_ms in DELAYS_MS.items():
        body = BODY * (8 if level == "too_large" else 1)
        request = Request.model_validate(
            {
                "node": "tally",
                "method": "POST",
                "body": body,
                "expect_body": f'"bytes": {len(body)}',
            }
        )
        treatments.append(
            Treatment(
                name=f"delay={level}",
                label=f"delay: {level}",
                levels={"delay": level},
                stack=stack(delay_ms),
                workload=Workload(request=request, arrivals=arrivals),
                instruments=(*STANDARD, Taken(node="tally", most_bytes=MOST_BYTES)),
            )
        )
    return treatments


def _contrasts(_: TallyParameters) -> list[Contrast]:
    rates = published("tally").set_index("scenario")["value"]
    return [
        Contrast(
            name="without a delay against with",
            claim="without a delay ten times as much is taken in",
            response="taken_bytes_per_s",
            numerator={"delay": "no"},
            denominator={"delay": "yes"},
            published_ratio=rates["without a delay"] / rates["with a delay"],
            published_direction="greater",
            source="tally study, claim 1",
        )
    ]


EXPERIMENT = Experiment(
    name="tally_delay",
    title="Tally: what a delay costs",
    question="How much less is taken in where every body takes 20 ms longer?",
    parameters=TallyParameters,
    treatments=_treatments,
    contrasts=_contrasts,
)
