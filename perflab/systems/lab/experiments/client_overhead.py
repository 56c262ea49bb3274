"""What does each HTTP client report for the same server and load, and from where on does it lie?"""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from perflab.load.workload import OpenLoop, Request, Stage, Workload
from perflab.recordings import Contrast
from perflab.stacks.plan import Node, StackPlan
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import RunParameters, TrialSeconds

SOURCE = "metricstream study, claim 4 (the load generator's own design was the bottleneck)"

HttpClient = Literal["lean", "aiohttp", "httpx", "http2"]
Rate = Annotated[float, Field(gt=0, le=1e6)]


class ClientOverheadParameters(RunParameters):
    """Parameters of the client study; ``client`` and ``rate`` are factors."""

    client: tuple[HttpClient, ...] = Field(
        default=("lean", "aiohttp", "httpx", "http2"),
        min_length=1,
        description="levels to compare: the lab's own client, two libraries, and HTTP/2 by h2",
    )
    rate: tuple[Rate, ...] = Field(
        default=(200.0, 1000.0, 3000.0),
        min_length=1,
        description="levels to compare: requests a second, sent whether or not earlier ones "
        "were answered",
    )
    duration_s: TrialSeconds = 1.0
    warmup_s: float = Field(
        default=0.3, ge=0, le=60, description="seconds before them, recorded apart"
    )
    delay_ms: float = Field(
        default=5.0,
        ge=0,
        le=1000,
        description="after how many ms the server answers; what a client reports beyond that is "
        "its own and the network's",
    )
    body_bytes: int = Field(
        default=100, ge=0, le=10_000_000, description="length of every answer, in bytes"
    )
    timeout_s: float = Field(
        default=5.0, gt=0, le=600, description="seconds after which a request counts as failed"
    )

    @model_validator(mode="after")
    def _answers_in_time(self) -> ClientOverheadParameters:
        if self.delay_ms >= self.timeout_s * 1000:
            raise ValueError(
                f"timeout_s = {self.timeout_s:g} is over before the server answers (delay_ms = "
                f"{self.delay_ms:g}): every request would fail"
            )
        return self


def _levels(parameters: ClientOverheadParameters) -> dict[str, tuple[str, ...]]:
    return {
        "client": parameters.client,
        "rate": tuple(f"{rate:.12g}" for rate in sorted(parameters.rate)),
    }


def _treatments(parameters: ClientOverheadParameters) -> list[Treatment]:
    settings = {"delay_ms": parameters.delay_ms, "body_bytes": parameters.body_bytes}
    plan = StackPlan(nodes=(Node(name="echo", service="echo", settings=settings),))
    treatments = []
    for client, rate in product(*_levels(parameters).values()):
        stage = Stage(rate=float(rate), duration_s=parameters.warmup_s + parameters.duration_s)
        load = Workload(
            request=Request(node="echo", expect_bytes=parameters.body_bytes),
            arrivals=OpenLoop(stages=(stage,), warmup_s=parameters.warmup_s),
            timeout_s=parameters.timeout_s,
            client=client,
        )
        treatments.append(
            Treatment(
                name=f"client={client},rate={rate}",
                label=f"{client}, {rate}/s",
                levels={"client": client, "rate": rate},
                stack=plan,
                workload=load,
            )
        )
    return treatments


def _contrasts(parameters: ClientOverheadParameters) -> list[Contrast]:
    levels = _levels(parameters)
    clients, lowest = levels["client"], levels["rate"][0]
    contrasts = []
    if {"httpx", "http2"} <= set(clients):
        claim = "beyond the study: what HTTP/2, by h2, costs beside httpx over HTTP/1.1"
        contrasts.append(_contrast("http2", "httpx", lowest, claim))
    for client in clients if "lean" in clients else ():
        if client != "lean":
            claim = (
                "a client's design decides what load it can make: a request costs "
                f"{client} more CPU than the lean client"
            )
            published = {"published_direction": "greater", "source": SOURCE}
            contrasts.append(_contrast(client, "lean", lowest, claim, **published))
    return contrasts


def _contrast(client: str, other: str, rate: str, claim: str, **published: Any) -> Contrast:
    return Contrast(
        name=f"{client} against {other} at {rate}/s",
        claim=f"{claim} (at {rate}/s)",
        response="client_cpu_us_per_request",
        numerator={"client": client, "rate": rate},
        denominator={"client": other, "rate": rate},
        **published,
    )


EXPERIMENT = Experiment(
    name="client_overhead",
    title="HTTP clients as load generators",
    question="What does each client report for the same server and load, what does it cost, and "
    "from which load on does it lie?",
    parameters=ClientOverheadParameters,
    treatments=_treatments,
    contrasts=_contrasts,
)
