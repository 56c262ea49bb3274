"""Loads of streams on the proxy: their parameters, treatments and factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from perflab.experiments.experiment import RunParameters
from perflab.instruments import STANDARD, Chunks, FailureThreshold, Instrument, Requests
from perflab.load.workload import ClosedLoop, StopRules, UserStage, Workload
from perflab.recordings import Remark
from perflab.stacks.hooks import HttpHook
from perflab.stacks.plan import StackPlan
from perflab.systems.llm.asking import request
from perflab.systems.llm.broken_off import BrokenOff
from perflab.systems.llm.preset import published_settings
from perflab.systems.llm.rungs import MODES, Rung, Set
from perflab.systems.llm.service import stack
from perflab.systems.llm.stream_cost import StreamCost
from perflab.trials.plan import Treatment

PROXY = "proxy"
# Two descriptors for a stream, and as many again for what is idle or about to close.
FILES_OF_A_USER, SPARE_FILES = 4, 256
Limit = Annotated[int, Field(ge=64, le=1_000_000)]


class StreamingParameters(RunParameters):
    """Parameters of the experiment on streams."""

    preset: Literal["quick", "published"] = Field(
        default="quick",
        description="published: the study's users, cycle, length and threshold for whatever is not "
        "given; the model's speed and the answers' length it does not state",
    )
    sets: tuple[Set, ...] = Field(
        default=("kinds",),
        min_length=1,
        description="which rungs: kinds (stream, batch and tools requests at a fixed paced load), "
        "unpaced (the same two versions with and without a constant cycle), limits (users ramp up "
        "while the proxy has few descriptors), wire (server-sent events against JSON lines)",
    )
    users: int = Field(default=60, ge=1, le=10_000, description="users of the fixed load")
    interval_s: float = Field(
        default=1.0,
        gt=0,
        le=3600,
        description="constant cycle of every user: the wait is the interval without the time taken",
    )
    duration_s: float = Field(
        default=7.0, ge=0.5, le=86_400, description="seconds of each trial that count"
    )
    warmup_s: float = Field(
        default=1.0,
        ge=0,
        le=86_400,
        description="seconds before them, in which users join; recorded apart",
    )
    tokens: int = Field(default=30, ge=3, le=100_000, description="tokens of every answer")
    token_rate: float = Field(
        default=100.0, gt=0, le=1e6, description="tokens a second of every answer"
    )
    fast_token_rate: float = Field(
        default=2000.0,
        gt=0,
        le=1e6,
        description="tokens a second in the set 'unpaced': the proxy shall be what takes time",
    )
    first_token_ms: float = Field(
        default=50.0, ge=0, le=600_000, description="when the first token is due"
    )
    tool_calls: int = Field(
        default=2, ge=0, le=10, description="tools that the model calls before it answers"
    )
    chunks_for_success: int = Field(
        default=2, ge=0, le=100_000, description="a stream succeeds with more chunks than this"
    )
    limits: tuple[Limit, ...] = Field(
        default=(128, 256),
        min_length=1,
        description="levels of the set 'limits': descriptors that the proxy may have",
    )
    stress_users: int = Field(
        default=250, ge=1, le=10_000, description="most users of the set 'limits'"
    )
    ramp_s: float = Field(
        default=8.0,
        ge=1,
        le=86_400,
        description="seconds in which they join, evenly, one after the other",
    )
    failures: int = Field(
        default=5,
        ge=1,
        le=1_000_000,
        description="failures that end a trial of the set 'limits'",
    )
    timeout_s: float = Field(
        default=5.0, gt=0, le=3600, description="seconds after which an answer has failed"
    )

    @model_validator(mode="before")
    @classmethod
    def _take_preset(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("preset") == "published":
            return {**published_settings(), **values}
        return values

    @model_validator(mode="after")
    def _leaves_room_in_the_cycle(self) -> StreamingParameters:
        if self.answer_s >= self.interval_s:
            raise ValueError(
                f"an answer takes {self.answer_s:g} s, the cycle is {self.interval_s:g} s: no user "
                "could keep it; make interval_s longer or tokens fewer"
            )
        return self

    @property
    def answer_s(self) -> float:
        """Return when the last token of an answer is due, in seconds."""
        return self.first_token_ms / 1e3 + (self.tokens - 1) / self.token_rate


def treatments(parameters: StreamingParameters, rungs: Mapping[str, Rung]) -> list[Treatment]:
    """Return a treatment for every rung, named as the mapping names it."""
    return [
        Treatment(
            name=f"rung={name}",
            label=rung.label,
            levels=levels(parameters, name, rung),
            stack=_stack(parameters, rung),
            workload=workload(parameters, rung),
            instruments=instruments(rung),
        )
        for name, rung in rungs.items()
    ]


def levels(parameters: StreamingParameters, name: str, rung: Rung) -> dict[str, str]:
    """Return a rung's levels, its own name first."""
    named = {
        "rung": name,
        "version": rung.version,
        "kind": rung.kind,
        "wire": rung.wire,
        "pacing": f"{parameters.interval_s:.12g} s" if rung.is_paced else "none",
        "token_rate": _token_rate(parameters, rung),
        "max_files": rung.max_files or "enough",
        "users": users(parameters, rung),
    }
    return {factor: str(level) for factor, level in named.items()}


def factors(
    parameters: StreamingParameters, rungs: Mapping[str, Rung]
) -> dict[str, tuple[str, ...]]:
    """Return the levels of every factor, in the order in which rungs first have them."""
    rows = [levels(parameters, name, rung) for name, rung in rungs.items()]
    return {factor: tuple(dict.fromkeys(row[factor] for row in rows)) for factor in rows[0]}


def users(parameters: StreamingParameters, rung: Rung) -> int:
    """Return the most users that a rung has at a time."""
    return parameters.stress_users if rung.is_ramp else parameters.users


def _token_rate(parameters: StreamingParameters, rung: Rung) -> float:
    return parameters.fast_token_rate if rung.is_fast else parameters.token_rate


def _stack(parameters: StreamingParameters, rung: Rung) -> StackPlan:
    """Return the proxy before a model that has room for all."""
    enough = SPARE_FILES + FILES_OF_A_USER * users(parameters, rung)
    planned = stack(
        {"mode": MODES[rung.version], "max_files": rung.max_files or enough},
        upstream={
            "tokens": parameters.tokens,
            "token_rate": _token_rate(parameters, rung),
            "first_token_ms": parameters.first_token_ms,
            "tool_calls": parameters.tool_calls,
            "max_files": enough,
        },
    )
    count = HttpHook(node=PROXY, method="GET", path="/counts", number="/completed")
    return StackPlan(nodes=planned.nodes, count=(count,))


def instruments(rung: Rung) -> tuple[Instrument, ...]:
    """Return what looks at a rung: a ramp is not steady, and a batch has no chunks."""
    looks: list[Instrument] = [StreamCost(node=PROXY)]
    if rung.kind != "batch":
        looks.append(Chunks())
    if not rung.is_ramp:
        return (*STANDARD, *looks)
    steady = [each for each in STANDARD if not isinstance(each, Requests)]
    return (
        Requests(steady=False), *steady, *looks, FailureThreshold(), BrokenOff()
    )  # fmt: skip


def workload(parameters: StreamingParameters, rung: Rung) -> Workload:
    """Return a rung's load: users of a constant cycle, without pacing, or ever more of them."""
    return Workload(
        request=request(
            rung.kind, rung.wire, PROXY, parameters.chunks_for_success + 1, parameters.tool_calls
        ),
        arrivals=_ramp(parameters) if rung.is_ramp else _fixed(parameters, rung),
        timeout_s=parameters.timeout_s,
        stop=StopRules(failures=parameters.failures if rung.is_ramp else 0),
    )


def _fixed(parameters: StreamingParameters, rung: Rung) -> ClosedLoop:
    return ClosedLoop(
        users=parameters.users,
        duration_s=parameters.duration_s,
        warmup_s=parameters.warmup_s,
        # Users who join together would ask together in every cycle.
        ramp_s=min(parameters.warmup_s, parameters.interval_s),
        pacing_s=parameters.interval_s if rung.is_paced else 0.0,
        max_duration_s=parameters.warmup_s + parameters.duration_s + parameters.timeout_s,
    )


def _ramp(parameters: StreamingParameters) -> ClosedLoop:
    """Return ever more users, who join evenly one after the other."""
    stage = UserStage(users=0, to_users=parameters.stress_users, duration_s=parameters.ramp_s)
    return ClosedLoop(
        users=parameters.stress_users,
        stages=(stage,),
        duration_s=parameters.ramp_s,
        pacing_s=parameters.interval_s,
        max_duration_s=parameters.ramp_s + parameters.timeout_s,
    )


def remarks(parameters: StreamingParameters, rungs: Mapping[str, Rung]) -> Sequence[Remark]:
    """Return what a reader of the plan must know: what success is, and what has no length."""
    least = parameters.chunks_for_success
    text = (
        f"a stream succeeds with its last event and more than {least} chunks, which are counted and"
        " not parsed; the model is a stand-in that sends tokens by a schedule, so that how long an"
        " answer lasts is mostly set by that"
    )
    found = [Remark(code="llm.success", text=text)]
    if any(rung.is_ramp for rung in rungs.values()):
        text = (
            f"users join until {parameters.failures} requests have failed; what is under way then"
            " goes on to its end and is in no time and no throughput"
        )
        found.append(Remark(code="llm.threshold", text=text))
    return found
