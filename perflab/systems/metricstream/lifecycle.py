"""Loads of small posts on the MetricStream server: its parameters, treatments and factors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from perflab.instruments import STANDARD, Instrument
from perflab.load.workload import (
    Arrivals,
    ClosedLoop,
    Connections,
    OpenLoop,
    Request,
    Stage,
    Workload,
)
from perflab.recordings import Remark
from perflab.stacks.plan import CPU_PERIOD_US, Cpus, Node, StackPlan
from perflab.systems.metricstream import naive_load
from perflab.systems.metricstream.connection_cost import ConnectionCost
from perflab.systems.metricstream.rungs import Rung, Set, chosen, published_settings
from perflab.trials.experiment import Preset
from perflab.trials.ladders import Ladder, LadderParameters, among

NODE = "metricstream"
# The server refuses connections beyond its own limit, which is at least this.
LEAST_CONNECTIONS = 1024
# The longest time of a closed loop.
SLOWEST_S = 120.0


class LifeCycleParameters(LadderParameters):
    """Parameters of the experiment on connections."""

    preset: Preset = Field(
        default="quick",
        description="published: trials of 10 s with the study's clients and target rate, for "
        "whatever is not given; the study does not say how long its own were",
    )
    sets: tuple[Set, ...] = Field(
        default=("phases",),
        min_length=1,
        description="which rungs: phases (the published steps), interaction (connections x "
        "keep-alive x threads at the target rate), saturation (the same in a closed loop), "
        "clients (throughput over users), naive (the study's own load tests and the lab's clients "
        "on one server)",
    )
    clients: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="most connections at a time at a target rate; users of the closed loops",
    )
    target_rate: float = Field(
        default=2000.0, gt=0, le=100_000, description="requests a second that are planned"
    )
    duration_s: float = Field(
        default=0.6, ge=0.1, le=600, description="seconds of each trial that count"
    )
    warmup_s: float = Field(
        default=0.2, ge=0, le=60, description="seconds before them, recorded apart"
    )
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
        description="seconds within which an answer must be there to be a success",
    )
    server_cpus: Cpus | None = Field(
        default=None,
        description="CPUs that the server may use (0.2: a fifth of one core), so that the server "
        "and not the client is the limit of a closed loop; None: all of its cores; needs Docker",
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return the values of the preset."""
        return published_settings()

    def offered(self) -> Mapping[str, Rung]:
        """Return every rung of the chosen sets, by name."""
        return chosen(self.sets)


def rungs(parameters: LifeCycleParameters) -> dict[str, Rung]:
    """Return the rungs of a run, by name."""
    return among(parameters.offered(), parameters.rungs)


def levels(parameters: LifeCycleParameters, rung: Rung) -> Mapping[str, object]:
    """Return a rung's levels beside its name."""
    rate, count = f"{parameters.target_rate:.12g}/s", f"{_users(parameters, rung)} users"
    return {
        **rung.settings,
        "connection": rung.connection,
        "metrics": rung.metrics,
        "load": count if rung.load == "closed" else rate,
        "load_from": rung.load_from,
    }


def _users(parameters: LifeCycleParameters, rung: Rung) -> int:
    return rung.users or parameters.clients


def stack(parameters: LifeCycleParameters, rung: Rung) -> StackPlan:
    """Return the server with the settings of a rung, and the naive client if it posts."""
    room = max(LEAST_CONNECTIONS, 2 * _users(parameters, rung))
    settings = {**rung.settings, "max_connections": room}
    server = Node(name=NODE, service="metricstream", settings=settings, cpus=parameters.server_cpus)
    other = () if rung.load_from == "lab" else (naive_load.node(_naive_load(parameters, rung)),)
    return StackPlan(nodes=(server, *other))


def instruments(parameters: LifeCycleParameters, rung: Rung) -> tuple[Instrument, ...]:
    """Return the instruments of a rung."""
    if rung.load_from == "lab":
        return (*STANDARD, ConnectionCost(node=NODE, metrics=rung.metrics))
    return naive_load.instruments(_naive_load(parameters, rung))


def _naive_load(parameters: LifeCycleParameters, rung: Rung) -> naive_load.NaiveLoad:
    """Return the load of the naive client, which is the one that the lab would send."""
    return naive_load.NaiveLoad(
        server=NODE,
        clients=parameters.clients,
        rate=parameters.target_rate,
        length_s=_length_s(parameters),
        reuses=rung.connection == "keep_alive",
        timeout_s=parameters.timeout_s,
    )


def workload(parameters: LifeCycleParameters, rung: Rung) -> Workload:
    """Return a rung's load: posts of a valid body, which may time out.

    If the naive client posts, the lab's own load only probes the server.
    """
    if rung.load_from != "lab":
        return naive_load.probes(_naive_load(parameters, rung), parameters.warmup_s)
    is_closed = rung.load == "closed"
    return Workload(
        request=Request(
            node=NODE,
            method="POST",
            path="/metrics",
            headers={"Content-Type": "application/json"},
            body=body(rung.metrics),
            expect_status=202,
        ),
        arrivals=_arrivals(parameters, rung),
        connections=Connections(reuse=rung.connection, most=0 if is_closed else parameters.clients),
        timeout_s=parameters.timeout_s,
        may_time_out=True,
    )


def body(number: int) -> str:
    """Return a body with ``number`` metrics of one client."""
    samples = [{"name": f"cpu.{place}", "value": 0.5} for place in range(number)]
    return json.dumps({"client": "a", "metrics": samples})


def _arrivals(parameters: LifeCycleParameters, rung: Rung) -> Arrivals:
    if rung.load == "closed":
        users = _users(parameters, rung)
        return ClosedLoop(
            users=users,
            requests=max(parameters.closed_requests, 10 * users),
            warmup_requests=max(parameters.closed_requests // 5, users),
            keep_up=True,
            max_duration_s=SLOWEST_S,
        )
    stage = Stage(rate=parameters.target_rate, duration_s=_length_s(parameters))
    return OpenLoop(stages=(stage,), warmup_s=parameters.warmup_s)


def _length_s(parameters: LifeCycleParameters) -> float:
    return parameters.warmup_s + parameters.duration_s


LADDER = Ladder(levels, stack, workload, instruments)


def remarks(parameters: LifeCycleParameters) -> Sequence[Remark]:
    """Return remarks for readers of the plan on success and on the limit of a load."""
    success = (
        f"success is an answer of 202 within {parameters.timeout_s:g} s, of all requests planned; "
        "the study does not define its own, so its percentages lie beside and are not compared"
    )
    on_plan = [Remark(code="metricstream.success", text=success)]
    of_run = rungs(parameters).values()
    if parameters.server_cpus is not None:
        on_plan.append(_cpu_limit(parameters.server_cpus))
    if any(rung.load == "closed" for rung in of_run):
        text = (
            "closed loops without think time: with a whole core this server answers faster than "
            "one core of a client can ask; where the client is the limit, the trial is refused, "
            "and that is the answer"
        )
        on_plan.append(Remark(code="metricstream.closed_loop", text=text))
    if any(rung.load_from != "lab" for rung in of_run):
        on_plan.append(Remark(code="metricstream.naive_client", text=naive_load.REMARK))
    return on_plan


def _cpu_limit(cpus: float) -> Remark:
    period_ms = CPU_PERIOD_US / 1e3
    text = (
        f"the server could use {cpus:g} CPUs, by a quota of {cpus * period_ms:g} ms of CPU time in "
        f"every period of {period_ms:g} ms: its rates are not those of the machine, and its "
        "response times hold waits for the next period"
    )
    return Remark(code="metricstream.cpu_limit", text=text)
