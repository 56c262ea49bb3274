"""Where does the chat server's time go, and what does looking at it cost?"""

from __future__ import annotations

from itertools import product
from typing import Literal

from pydantic import Field

from perflab.experiments.experiment import Experiment, RunParameters
from perflab.experiments.serialization import Codec
from perflab.load.workload import Request, Scripted, Workload
from perflab.recordings import Contrast
from perflab.stacks.plan import Node, StackPlan
from perflab.trials.plan import Profiling, Treatment

SCRIPT = "perflab.experiments.profile_user:Talker"
NODE = "chat"
COST = "assumption of every profile: looking does not change what is seen"
Switch = Literal["on", "off"]
Levels = dict[str, tuple[str, ...]]


class ProfileParameters(RunParameters):
    """Parameters of the profiles of the chat server.

    ``codec``, ``deflate`` and ``profiler`` are factors. ``users`` users send a message each
    ``interval_s`` seconds, everyone hears everyone, and ask for ``/health`` beside it: a request
    that waits in the same event loop. ``rate_hz`` is how often the profiler looks.
    """

    codec: tuple[Codec, ...] = Field(default=("json", "orjson"), min_length=1)
    deflate: tuple[Switch, ...] = Field(default=("off",), min_length=1)
    profiler: tuple[Switch, ...] = Field(default=("off", "on"), min_length=1)
    serialize: Literal["per_send", "per_message"] = "per_send"
    users: int = Field(default=80, ge=1, le=500)
    interval_s: float = Field(default=0.5, ge=0.01, le=60)
    duration_s: float = Field(default=4.0, ge=0.5, le=3600)
    warmup_s: float = Field(default=1.0, ge=0.1, le=600)
    rate_hz: int = Field(default=100, ge=1, le=1000)


def _levels(parameters: ProfileParameters) -> Levels:
    return {
        "codec": tuple(dict.fromkeys(parameters.codec)),
        "deflate": tuple(dict.fromkeys(parameters.deflate)),
        "profiler": tuple(dict.fromkeys(parameters.profiler)),
    }


def _treatments(parameters: ProfileParameters) -> list[Treatment]:
    treatments = []
    for codec, deflate, profiler in product(*_levels(parameters).values()):
        levels = {"codec": codec, "deflate": deflate, "profiler": profiler}
        seen = Profiling(node=NODE, rate_hz=parameters.rate_hz) if profiler == "on" else None
        treatments.append(
            Treatment(
                name=",".join(f"{factor}={level}" for factor, level in levels.items()),
                label=f"{codec}, deflate {deflate}, profiler {profiler}",
                levels=levels,
                stack=_stack(parameters, codec, deflate),
                workload=_workload(parameters, deflate),
                profiling=seen,
            )
        )
    return treatments


def _stack(parameters: ProfileParameters, codec: str, deflate: str) -> StackPlan:
    settings = {
        "codec": codec,
        "deflate": deflate,
        "serialize": parameters.serialize,
        "subscriber_share": 1,
        # Logins are another study; here they would only be noise at the start.
        "login_hash": "none",
        "accounts": parameters.users,
    }
    return StackPlan(nodes=(Node(name=NODE, service="chat", settings=settings),))


def _workload(parameters: ProfileParameters, deflate: str) -> Workload:
    return Workload(
        request=Request(node=NODE, path="/health"),
        arrivals=Scripted(
            script=SCRIPT,
            users=parameters.users,
            # Everyone is there before the warm-up ends, evenly over one interval or less.
            join_s=min(parameters.interval_s, parameters.warmup_s / 2) / parameters.users,
            warmup_s=parameters.warmup_s,
            duration_s=parameters.duration_s,
            parameters={"interval_s": parameters.interval_s, "deflate": deflate == "on"},
        ),
    )


def _contrasts(parameters: ProfileParameters) -> list[Contrast]:
    levels = _levels(parameters)
    if set(levels["profiler"]) != {"on", "off"}:
        return []
    return [
        Contrast(
            name=f"profiler on against off, {codec}, deflate {deflate}: {response}",
            claim=f"profiling at {parameters.rate_hz} Hz leaves {what} as it is "
            f"({codec}, deflate {deflate})",
            response=response,
            numerator={"codec": codec, "deflate": deflate, "profiler": "on"},
            denominator={"codec": codec, "deflate": deflate, "profiler": "off"},
            published_direction="none",
            source=COST,
        )
        for codec, deflate in product(levels["codec"], levels["deflate"])
        for response, what in (
            (f"cpu_share_{NODE}", "the server's CPU"),
            ("p50_ms", "the median response time"),
            ("p95_ms", "the p95 of response times"),
        )
    ]


EXPERIMENT = Experiment(
    name="profile",
    title="Profile of the chat server, and what profiling costs",
    question="In which functions does the chat server spend its time, what changes with the codec "
    "or compression, and what does it cost to look?",
    parameters=ProfileParameters,
    treatments=_treatments,
    factors=_levels,
    contrasts=_contrasts,
)
