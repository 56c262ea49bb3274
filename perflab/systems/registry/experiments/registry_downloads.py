"""Which step of the published ladder lets 100 downloads at one instant come through?

All clients download one model at one instant. With the load from inside they are coroutines of the
event loop that serves them (``POST /health/performance/workload`` of the service), and only that
generator counts them. The lab then sends a few probes of ``/health`` from outside; their response
times show how long the loop was held up.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, model_validator

from perflab.instruments import STANDARD, Instrument, OtherLoad, Requests
from perflab.load.workload import Burst, OpenLoop, Request, Stage, Workload
from perflab.recordings import published_value
from perflab.stacks.plan import BytesPerS, Link, RoundTripMs, StackPlan
from perflab.systems.registry.counts import RegistryCounts
from perflab.systems.registry.rungs import LADDER, RESULTS, STUDY, Rung, contrasts, lanes
from perflab.systems.registry.stacks import PATH, model_crc32, stack
from perflab.trials.experiment import Experiment
from perflab.trials.ladders import LadderParameters, treatments_of
from perflab.trials.run_parameters import Preset

NODE = "registry"
MODEL_SIZE = ("system", "Tiny-LLM", "size")
# The lab's choice: one download takes 31 s at the published size. The study says 30 to 40 of one
# among 100 after the fixes, whose fastest had 1,950,000 bytes/s.
BYTES_PER_S = 800_000.0
# What its final table reads in all, and what the fastest download of that table had. Sizes may be
# compared with the limit for all, alone or with that of each, and without either.
SHARED_BYTES_PER_S = published_value(STUDY, RESULTS, "optimised", "throughput_bytes")
FASTEST_BYTES_PER_S = float(
    round(
        published_value(STUDY, *MODEL_SIZE)
        / (published_value(STUDY, RESULTS, "optimised", "min_latency") / 1000)
    )
)
# A body is recorded at this many points for the waterfall.
POINTS = 24
# Shares of the time over the link alone: how long probes go on, and when a trial fails.
PROBED_SHARE, FAILED_SHARE, SPARE_S = 1.5, 2.0, 60.0
PROBES_PER_S = 5.0
# The published model; in paths its slash is an underscore.
MODEL = "arnir0/Tiny-LLM"
# The counts of the service's own generator; see services/registry/README.md.
TOLD = {
    "told_succeeded": "successful",
    "told_total_duration_s": "total_duration_s",
    "told_mean_ms": "mean_ms",
}
CUT_OFF = {
    "told_total_duration_s": ("timed_out", "failed_otherwise"),
    "told_mean_ms": ("timed_out",),
}


class DownloadParameters(LadderParameters):
    """Parameters of the experiments on downloads.

    The defaults are a tenth of the published size and time-out, at the same bytes per second of a
    connection: downloads keep their order in the ladder and take a tenth of the time.
    """

    ladder: ClassVar = LADDER
    study: ClassVar = STUDY
    stated: ClassVar = {
        "models": ("system", "registry", "models"),
        "model_bytes": MODEL_SIZE,
        "clients": ("workload", "all", "clients"),
        "timeout_s": ("workload", "all", "timeout"),
    }

    preset: Preset = Field(
        default="quick",
        description="published: the study's load, unless you give another; a block of the ladder "
        "then takes a quarter of an hour",
    )
    sets: tuple[str, ...] = Field(
        default=("ladder",),
        min_length=1,
        description="which rungs: ladder (the published steps), beyond (streamed, async client, "
        "redirect, ranges), threads (executor sizes), pools (sizes of boto3's pool), clients (one "
        "against all), inside (four rungs, each also with the load from the service's own process)",
    )
    clients: int = Field(
        default=100, ge=1, le=500, description="clients that each download once, at one instant"
    )
    model_bytes: int = Field(
        default=2_483_401, ge=2_000, le=1_000_000_000, description="length of the model's zip"
    )
    timeout_s: float = Field(
        default=30.0, gt=0, le=3_600, description="seconds after which a client gives up"
    )
    bytes_per_s: BytesPerS = Field(
        default=BYTES_PER_S,
        description="bytes per second of each connection between service and store, or unlimited; "
        f"the fastest download of the study's final table had {FASTEST_BYTES_PER_S:,.0f}",
    )
    shared_bytes_per_s: BytesPerS = Field(
        default="unlimited",
        description="bytes per second of all these connections together, or unlimited; the study's "
        f"final table has {SHARED_BYTES_PER_S:,.0f}",
    )
    round_trip_ms: RoundTripMs = Field(
        default=0.0, description="delay that the link adds to a round trip to the store, in ms"
    )
    models: int = Field(
        default=20, ge=1, le=10_000, description="models in the registry; one is of full size"
    )

    def differences(self, **levels: Any) -> list[str]:
        """Return the differences from the study; its link may have the limits of its table."""
        if self.shared_bytes_per_s == SHARED_BYTES_PER_S:
            levels = {"shared_bytes_per_s": "unlimited", **levels}
            if self.bytes_per_s == FASTEST_BYTES_PER_S:
                levels = {"bytes_per_s": BYTES_PER_S, **levels}
        return super().differences(**levels)

    @model_validator(mode="after")
    def _starts_afresh(self) -> DownloadParameters:
        if self.fresh_blocks != 1:
            raise ValueError(
                f"fresh_blocks = {self.fresh_blocks}: after its clients gave up, a service works "
                "for minutes on their requests, so a trial could meet the queue of another; set "
                "fresh_blocks = 1"
            )
        return self

    @model_validator(mode="after")
    def _has_whole_seconds_inside(self) -> DownloadParameters:
        if "inside" in self.sets and not self.timeout_s.is_integer():
            raise ValueError(
                f"timeout_s = {self.timeout_s:g}: the service's own generator takes whole seconds; "
                "give a whole number, or leave 'inside' out of sets"
            )
        return self


def levels(parameters: DownloadParameters, rung: Rung) -> Mapping[str, object]:
    """Return a rung's levels beside its name."""
    return {
        "handler": rung.handler,
        "body": rung.body,
        "executor_threads": rung.executor_threads,
        "pool_connections": rung.pool_connections,
        "retries": rung.retries,
        "clients": clients(parameters, rung),
        "load_from": rung.load_from,
    }


def clients(parameters: DownloadParameters, rung: Rung) -> int:
    """Return how many clients a rung has."""
    return 1 if rung.one_client else parameters.clients


def stack_of(parameters: DownloadParameters, rung: Rung) -> StackPlan:
    """Return store, link, metadata and service with the settings of a rung."""
    return stack(
        rung.settings,
        model_bytes=parameters.model_bytes,
        models=parameters.models,
        link=Link.model_validate(parameters.model_dump(include=set(Link.model_fields))),
        # A rung with the load from inside would else meet the queue of the same rung from outside.
        apart="" if rung.load_from == "outside" else rung.load_from,
    )


def instruments(parameters: DownloadParameters, rung: Rung) -> tuple[Instrument, ...]:
    """Return the instruments of a rung; a load from inside fails after :func:`longest_s`."""
    if rung.load_from == "outside":
        return (*STANDARD, RegistryCounts())
    others = [instrument for instrument in STANDARD if not isinstance(instrument, Requests)]
    told = OtherLoad(
        node=NODE,
        path="/health/performance/workload",
        body={
            "num_clients": clients(parameters, rung),
            "model_id": MODEL,
            "duration_seconds": int(parameters.timeout_s),
        },
        columns=TOLD,
        at_least_if=CUT_OFF,
        requests="requests",
        longest_s=longest_s(parameters, rung),
    )
    probes = Requests(prefix="probe_", phases=False)
    return (probes, *others, RegistryCounts(downloads=False), told)


def workload(parameters: DownloadParameters, rung: Rung) -> Workload:
    """Return downloads of all clients at one instant, or the lab's probes of a load from inside."""
    if rung.load_from == "inside":
        within_s = min(parameters.timeout_s, link_s(parameters, rung))
        stage = Stage(rate=PROBES_PER_S, duration_s=PROBED_SHARE * within_s + 2.0)
        return Workload(
            request=Request(node=NODE, path="/health"),
            arrivals=OpenLoop(stages=(stage,)),
            timeout_s=min(longest_s(parameters, rung), 3_600.0),
            may_time_out=True,
        )
    return Workload(
        request=Request(
            node=NODE,
            path=PATH,
            expect_bytes=parameters.model_bytes,
            expect_crc32=model_crc32(parameters.model_bytes),
            redirects=1 if rung.handler == "redirect" else 0,
            progress_points=POINTS,
        ),
        arrivals=Burst(size=clients(parameters, rung)),
        timeout_s=parameters.timeout_s,
        may_time_out=True,
    )


def link_s(parameters: DownloadParameters, rung: Rung) -> float:
    """Return how long all downloads of a rung take over the link alone, if no client gives up."""
    downloads = clients(parameters, rung)
    # Python counts the cores of the machine, not those that a process may use.
    at_a_time = lanes(rung, os.cpu_count() or 1) or downloads
    each, shared = (
        math.inf if rate == "unlimited" else rate
        for rate in (parameters.bytes_per_s, parameters.shared_bytes_per_s)
    )
    rate = min(each, shared / at_a_time)
    return math.ceil(downloads / at_a_time) * parameters.model_bytes / rate


def longest_s(parameters: DownloadParameters, rung: Rung) -> float:
    """Return the seconds after which a load from inside has failed."""
    return parameters.timeout_s + FAILED_SHARE * link_s(parameters, rung) + SPARE_S


EXPERIMENT = Experiment(
    name="registry_downloads",
    title="Model registry: the ladder of downloads",
    question="Which step of the published ladder lets 100 downloads at one instant come through, "
    "and what limits each?",
    parameters=DownloadParameters,
    treatments=lambda parameters: treatments_of(
        parameters.chosen_rungs, parameters, levels, stack_of, workload, instruments
    ),
    contrasts=lambda parameters: contrasts(
        parameters.chosen_rungs,
        not parameters.differences(),
        parameters.shared_bytes_per_s != "unlimited",
    ),
    warnings=lambda parameters: parameters.not_compared(
        "registry.load", "published sizes are not compared, because "
    ),
)
