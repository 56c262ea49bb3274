"""What does a connection per request cost, and which published phase changes anything?

With the load from the naive client, only that service counts its requests. It is a bad load
generator on purpose (services/naive_client/README.md says how). The lab then sends a few probes of
``/health``, so that a trial has requests of the lab's own, and the server's CPU in the meantime.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from perflab.instruments import STANDARD, Instrument, OtherLoad, Requests, ServerCount
from perflab.load.workload import ClosedLoop, Connections, OpenLoop, Request, Stage, Workload
from perflab.recordings import Remark
from perflab.stacks.plan import CPU_PERIOD_US, Cpus, Node, StackPlan
from perflab.systems.metricstream.connection_cost import NODE, ConnectionCost
from perflab.systems.metricstream.rungs import (
    LADDER,
    LEVELS_OF,
    OTHERS,
    STUDY,
    Rung,
    contrasts,
)
from perflab.trials.experiment import Experiment
from perflab.trials.ladders import LadderParameters, treatments_of
from perflab.trials.run_parameters import Preset, TrialSeconds

NAIVE_NODE = "naive_client"
# The server refuses connections beyond its own limit, which is at least this.
LEAST_CONNECTIONS = 1024
# The study states neither length nor time-out of its load.
LONG_TRIAL_S = 10.0
# The longest time of a closed loop.
SLOWEST_S = 120.0
PROBES_PER_S, FEWEST_PROBES = 20.0, 12
# The least that the naive client's settings allow.
SHORTEST_TIMEOUT_MS = 10
# Threads, connections and the answer with the results need a moment beside the naive load.
SPARE_S = 60.0
TOLD = {"told_success_rate": "success_rate", "told_achieved_rps": "achieved_rate"}


class LifeCycleParameters(LadderParameters):
    """Parameters of the experiment on connections."""

    ladder: ClassVar = LADDER
    study: ClassVar = STUDY
    stated: ClassVar = {
        "clients": (OTHERS, "load test", "clients"),
        "target_rate": (OTHERS, "load test", "target_rate"),
    }

    preset: Preset = Field(
        default="quick",
        description="published: trials of 10 s with the study's clients and target rate, unless "
        "you give others; the study does not say how long its own trials were",
    )
    sets: tuple[str, ...] = Field(
        default=("phases",),
        min_length=1,
        description="which rungs: phases (the published steps), interaction (connections x "
        "keep-alive x threads at the target rate), saturation (the same in a closed loop), "
        "naive (the study's own load tests and the lab's clients on one server)",
    )
    clients: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="most connections at a time at a target rate; users of the closed loops",
    )
    target_rate: float = Field(
        default=2000.0, gt=0, le=100_000, description="planned requests a second"
    )
    loop: Literal["open", "closed"] = Field(
        default="open",
        description="how the lab's clients ask at the target rate: open (by the clock, whatever "
        "the server does), closed (each of them every clients/target_rate seconds, or later, when "
        "it has its answer: success is then the achieved over the target rate)",
    )
    duration_s: TrialSeconds = 0.6
    warmup_s: float = Field(default=0.2, ge=0, le=60, description="seconds of warm-up before them")
    closed_requests: int = Field(
        default=3000,
        ge=20,
        le=1_000_000,
        description="requests that count in each trial of a closed loop",
    )
    timeout_s: float = Field(
        default=1.0,
        gt=0,
        le=60,
        description="seconds within which an answer must come to be a success",
    )
    server_cpus: Cpus | None = Field(
        default=None,
        description="CPUs that the server may use (0.2: a fifth of one core), so that the server "
        "and not the client is the limit of a closed loop; None: all of its cores; needs Docker",
    )

    backlog: int = Field(
        default=1024,
        ge=1,
        le=65_535,
        description="connections that wait for the server to accept them; the kernel drops others, "
        "and their clients try again after a second",
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return the values of the preset."""
        return {**super().published_values(), "duration_s": LONG_TRIAL_S}

    def differences(self, **levels: Any) -> list[str]:
        """Return the differences from the study, which states no length of its load.

        No closed loop has a level that the study states.
        """
        not_stated = {
            "duration_s": LONG_TRIAL_S,
            "closed_requests": type(self).model_fields["closed_requests"].default,
        }
        return super().differences(**{**not_stated, **levels})


def levels(parameters: LifeCycleParameters, rung: Rung) -> Mapping[str, object]:
    """Return a rung's levels beside its name."""
    rate, count = f"{parameters.target_rate:.12g}/s", f"{parameters.clients} users"
    at_rate = rate if parameters.loop == "open" or rung.load_from != "lab" else f"{rate} by {count}"
    return {
        **rung.settings,
        "connection": rung.connection,
        "metrics": rung.metrics,
        "load": count if rung.load == "closed" else at_rate,
        "load_from": rung.load_from,
    }


def _length_s(parameters: LifeCycleParameters) -> float:
    return parameters.warmup_s + parameters.duration_s


def stack(parameters: LifeCycleParameters, rung: Rung) -> StackPlan:
    """Return the server with the settings of a rung, and the naive client if it posts."""
    room = max(LEAST_CONNECTIONS, 2 * parameters.clients)
    settings = {**rung.settings, "max_connections": room, "backlog": parameters.backlog}
    server = Node(name=NODE, service=NODE, settings=settings, cpus=parameters.server_cpus)
    other = () if rung.load_from == "lab" else (_naive_client(parameters, rung),)
    return StackPlan(nodes=(server, *other))


def _naive_client(parameters: LifeCycleParameters, rung: Rung) -> Node:
    """Return the naive client, wired to the server, with the load that the lab would send.

    On four cores and more the placement of a link keeps client and server on different cores.
    """
    return Node(
        name=NAIVE_NODE,
        service=NAIVE_NODE,
        settings={
            "clients": parameters.clients,
            "rate": parameters.target_rate,
            "duration_s": _length_s(parameters),
            "connection": "persistent" if rung.connection == "keep_alive" else "per_request",
            "timeout_ms": max(SHORTEST_TIMEOUT_MS, round(1000 * parameters.timeout_s)),
        },
        needs={"target": NODE},
        placement="link",
    )


def instruments(parameters: LifeCycleParameters, rung: Rung) -> tuple[Instrument, ...]:
    """Return the instruments of a rung."""
    if rung.load_from == "lab":
        count = ServerCount(node=NODE, item="samples_taken", of_each=rung.metrics)
        is_paced = rung.load == "target" and parameters.loop == "closed"
        cost = ConnectionCost(target_rate=parameters.target_rate if is_paced else 0.0)
        return (*STANDARD, count, cost)
    others = [instrument for instrument in STANDARD if not isinstance(instrument, Requests)]
    told = OtherLoad(
        node=NAIVE_NODE,
        path="/load",
        columns=TOLD,
        poll_s=0.25,
        longest_s=_length_s(parameters) + parameters.timeout_s + SPARE_S,
    )
    return (Requests(prefix="probe_", phases=False), *others, told)


def workload(parameters: LifeCycleParameters, rung: Rung) -> Workload:
    """Return a rung's load: posts of a valid body, which may time out.

    If the naive client posts, the lab's own load only probes the server's health, for as long as
    the naive client begins requests.
    """
    if rung.load_from != "lab":
        return Workload(
            request=Request(node=NODE, path="/health"),
            arrivals=_at_rate(parameters, max(PROBES_PER_S, FEWEST_PROBES / parameters.duration_s)),
            timeout_s=parameters.timeout_s,
            may_time_out=True,
        )
    arrivals: OpenLoop | ClosedLoop = _at_rate(parameters, parameters.target_rate)
    if rung.load == "closed":
        arrivals = _closed(parameters)
    elif parameters.loop == "closed":
        arrivals = _paced(parameters)
    is_open = isinstance(arrivals, OpenLoop)
    return Workload(
        request=Request(
            node=NODE,
            method="POST",
            path="/metrics",
            headers={"Content-Type": "application/json"},
            body=body(rung.metrics),
            expect_status=202,
        ),
        arrivals=arrivals,
        connections=Connections(reuse=rung.connection, most=parameters.clients if is_open else 0),
        timeout_s=parameters.timeout_s,
        may_time_out=True,
    )


def body(number: int) -> str:
    """Return a body with ``number`` metrics of one client."""
    samples = [{"name": f"cpu.{place}", "value": 0.5} for place in range(number)]
    return json.dumps({"client": "a", "metrics": samples})


def _closed(parameters: LifeCycleParameters) -> ClosedLoop:
    return ClosedLoop(
        users=parameters.clients,
        requests=max(parameters.closed_requests, 10 * parameters.clients),
        warmup_requests=max(parameters.closed_requests // 5, parameters.clients),
        keep_up=True,
        max_duration_s=SLOWEST_S,
    )


def _paced(parameters: LifeCycleParameters) -> ClosedLoop:
    """Return users who join within a pace, so that their requests come evenly at first."""
    pace_s = parameters.clients / parameters.target_rate
    return ClosedLoop(
        users=parameters.clients,
        duration_s=parameters.duration_s,
        warmup_s=parameters.warmup_s,
        pacing_s=pace_s,
        ramp_s=min(pace_s, parameters.warmup_s),
        max_duration_s=SLOWEST_S,
    )


def _at_rate(parameters: LifeCycleParameters, rate: float) -> OpenLoop:
    stage = Stage(rate=rate, duration_s=_length_s(parameters))
    return OpenLoop(stages=(stage,), warmup_s=parameters.warmup_s)


def remarks(parameters: LifeCycleParameters) -> Sequence[Remark]:
    """Return remarks for readers of the plan on success and on the limit of a load."""
    success = (
        f"success is the share of planned requests that get a 202 within {parameters.timeout_s:g} "
        "s; the study does not define its success, so its percentages are shown and not compared"
    )
    if parameters.loop == "closed":
        success = success.replace("planned requests", "the target rate's requests")
    on_plan = [Remark(code="metricstream.success", text=success)]
    of_run = parameters.chosen_rungs.values()
    if LEVELS_OF in parameters.chosen_rungs:
        begin = f"the levels claimed of {LEVELS_OF} are not judged: "
        on_plan += parameters.not_compared("metricstream.load", begin)
    if parameters.server_cpus is not None:
        on_plan.append(_cpu_limit(parameters.server_cpus))
    if any(rung.load == "closed" for rung in of_run):
        text = (
            "in closed loops without think time a server with a whole core answers faster than "
            "one core of the client can ask; a trial in which the client is the limit is refused; "
            "give the server less with server_cpus"
        )
        on_plan.append(Remark(code="metricstream.closed_loop", text=text))
    if any(rung.load_from != "lab" for rung in of_run):
        text = (
            "numbers named told_* are the naive client's own, and the lab vouches for none of "
            "them: the naive client counts its warm-up, leaves out requests that hung, and calls "
            "the achieved share of its target rate success"
        )
        on_plan.append(Remark(code="metricstream.naive_client", text=text))
    return on_plan


def _cpu_limit(cpus: float) -> Remark:
    period_ms = CPU_PERIOD_US / 1e3
    text = (
        f"the server can use {cpus:g} CPUs, by a quota of {cpus * period_ms:g} ms of CPU time in "
        f"every period of {period_ms:g} ms, so its rates are lower than the machine's, and its "
        "response times include waits for the next period"
    )
    return Remark(code="metricstream.cpu_limit", text=text)


EXPERIMENT = Experiment(
    name="connection_lifecycle",
    title="MetricStream: the life cycle of a connection",
    question="What does a connection for every request cost, and which of the published phases "
    "changes anything while connections are made anew?",
    parameters=LifeCycleParameters,
    treatments=lambda parameters: treatments_of(
        parameters.chosen_rungs, parameters, levels, stack, workload, instruments
    ),
    contrasts=lambda parameters: contrasts(
        parameters.chosen_rungs,
        as_published=not parameters.differences(),
        sized=not parameters.differences(server_cpus=None),
    ),
    warnings=remarks,
)
