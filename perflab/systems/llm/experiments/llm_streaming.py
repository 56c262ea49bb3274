"""Is a proxy better when it passes chunks through, and what can a load test tell of it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from perflab.instruments import STANDARD, Chunks, Instrument, ServerCount, UsersHeld
from perflab.load.workload import ClosedLoop, Objective, StopRules, Workload
from perflab.recordings import Contrast, Remark, published_value
from perflab.stacks.plan import StackPlan
from perflab.systems.llm.rungs import (
    LADDER,
    MODES,
    RESULTS,
    STUDY,
    Kind,
    Rung,
    chosen,
    contrasts,
)
from perflab.systems.llm.stacks import PROXY, request, stack
from perflab.systems.llm.stream_cost import BrokenOff, StreamCost
from perflab.trials.experiment import Experiment
from perflab.trials.ladders import LadderParameters, treatments_of
from perflab.trials.run_parameters import Preset

Limit = Annotated[int, Field(ge=64, le=1_000_000)]
METHOD = "method"
MINUTE_S = 60.0
# An answer takes about 10 s, so that streams are under way half of a 20 s cycle.
ANSWER = {"tokens": 200, "token_rate": 20.0, "first_token_ms": 300.0}
# The parameters of the published stress test that the study states.
OF_STRESS = ("stress_users", "interval_s", "failures", "ramp_s", "chunks_for_success", "ramp_kind")
# What else makes its answers: nothing is published of it, so it must be as in the preset.
OF_ANSWER = (*ANSWER, "timeout_s")
# Two descriptors for a stream, two for connections that are idle or about to close; and those of
# what else a process has open.
FILES_OF_A_USER, FILES_BESIDE = 4, 256
# So fast that the proxy takes most of the time.
FAST_TOKEN_RATE = 2000.0
# A search begins with this many users, and finds its answer to within this share.
SEARCH_START, SEARCH_TOLERANCE = 40, 0.05


class StreamingParameters(LadderParameters):
    """Parameters of the experiment on streams."""

    ladder: ClassVar = LADDER
    study: ClassVar = STUDY
    # The model's speed and the answers' length are not published.
    stated: ClassVar = {
        "users": (METHOD, "stream", "users"),
        "interval_s": (METHOD, "stream", "interval"),
        "chunks_for_success": (METHOD, "stream", "chunks_for_success"),
        "tool_calls": ("system", "tools requests", "tool_calls"),
        "stress_users": (RESULTS, "both", "stress_test_users"),
        "failures": (METHOD, "early end", "failures"),
    }

    preset: Preset = Field(
        default="quick",
        description="published: the study's users, cycle, length and threshold, unless you give "
        "others; the study does not state the model's speed and the length of answers",
    )
    sets: tuple[str, ...] = Field(
        default=("kinds",),
        min_length=1,
        description="which rungs: kinds (stream, batch and tools requests at a fixed paced load), "
        "unpaced (the same two versions with and without a constant cycle), limits (users ramp up "
        "while the proxy has few descriptors), capacity (the most users that hold the objectives, "
        "by search)",
    )
    users: int = Field(default=60, ge=1, le=10_000, description="users of the fixed load")
    interval_s: float = Field(
        default=1.0,
        gt=0,
        le=3600,
        description="constant cycle of every user, who waits for the rest of it after an answer",
    )
    duration_s: float = Field(
        default=7.0, ge=0.5, le=86_400, description="seconds of each trial that count"
    )
    warmup_s: float = Field(
        default=1.0, ge=0, le=86_400, description="seconds before them, in which users join"
    )
    tokens: int = Field(default=30, ge=3, le=100_000, description="tokens of every answer")
    token_rate: float = Field(
        default=100.0, gt=0, le=1e6, description="tokens a second of every answer"
    )
    first_token_ms: float = Field(
        default=50.0, ge=0, le=600_000, description="time until the first token is due, in ms"
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
    ramp_kind: Kind = Field(
        default="stream", description="requests of the set 'limits': stream, batch or tools"
    )
    stress_users: int = Field(
        default=250, ge=1, le=10_000, description="most users of the set 'limits'"
    )
    ramp_s: float = Field(
        default=8.0, ge=1, le=86_400, description="seconds in which these users join, evenly"
    )
    failures: int = Field(
        default=5,
        ge=0,
        le=1_000_000,
        description="failures that end a trial of the set 'limits'; 0: it goes on to its end",
    )
    objectives: tuple[str, ...] = Field(
        default=("ttft_p95<250ms", "gap_p99<100ms"),
        min_length=1,
        description="objectives of the set 'capacity', on the time to the first chunk (ttft), the "
        "gaps between chunks (gap) or the whole answer (p95<2s)",
    )
    search_most: int = Field(
        default=1000, ge=1, le=10_000, description="most users that the search may try"
    )
    probe_s: float = Field(
        default=4.0,
        ge=0.5,
        le=3600,
        description="seconds that count of each step of the search, after a cycle in which users "
        "join",
    )
    timeout_s: float = Field(
        default=5.0, gt=0, le=3600, description="seconds after which an answer has failed"
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return the values of the preset."""
        settings = super().published_values()
        length_s = MINUTE_S * published_value(STUDY, METHOD, "all", "run_duration")
        # The warm-up is one cycle, in which the users join.
        return {
            **settings,
            **ANSWER,
            "warmup_s": settings["interval_s"],
            "duration_s": length_s - settings["interval_s"],
            "ramp_s": length_s,
            "limits": (512,),
            "timeout_s": 60.0,
            # Three cycles of every user; the first token is due after 300 ms.
            "probe_s": 3 * settings["interval_s"],
            "objectives": ("ttft_p95<600ms", "gap_p99<200ms"),
        }

    def offered(self) -> Mapping[str, Rung]:
        """Return every rung of the chosen sets, by name."""
        return chosen(self.sets, self.limits, self.ramp_kind)

    @model_validator(mode="after")
    def _leaves_room_in_the_cycle(self) -> StreamingParameters:
        paced = [rung for rung in self.chosen_rungs.values() if rung.is_paced]
        if not paced:
            return self
        slowest = min(_token_rate(self, rung) for rung in paced)
        answer_s = self.first_token_ms / 1e3 + (self.tokens - 1) / slowest
        if answer_s >= self.interval_s:
            raise ValueError(
                f"an answer takes {answer_s:g} s, the cycle is {self.interval_s:g} s, so no user "
                "can keep the cycle; raise interval_s or lower tokens"
            )
        return self

    @field_validator("objectives")
    @classmethod
    def _are_objectives(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        for text in texts:
            Objective.of_text(text)
        return texts


def levels(parameters: StreamingParameters, rung: Rung) -> Mapping[str, object]:
    """Return a rung's levels beside its name."""
    return {
        "version": rung.version,
        "kind": rung.kind,
        "pacing": f"{parameters.interval_s:.12g} s" if rung.is_paced else "none",
        "token_rate": _token_rate(parameters, rung),
        "max_files": rung.max_files or "enough",
        "users": users(parameters, rung),
    }


def users(parameters: StreamingParameters, rung: Rung) -> int:
    """Return the most users that a rung's own load has at a time."""
    return parameters.stress_users if rung.is_ramp else parameters.users


def _token_rate(parameters: StreamingParameters, rung: Rung) -> float:
    return FAST_TOKEN_RATE if rung.is_fast else parameters.token_rate


def _stack(parameters: StreamingParameters, rung: Rung) -> StackPlan:
    """Return the proxy, with its rung's descriptors or enough, and a model that has enough."""
    searched = parameters.search_most if rung.is_search else 0
    enough = FILES_BESIDE + FILES_OF_A_USER * max(users(parameters, rung), searched)
    return stack(
        {"mode": MODES[rung.version], "max_files": rung.max_files or enough},
        upstream={
            "tokens": parameters.tokens,
            "token_rate": _token_rate(parameters, rung),
            "first_token_ms": parameters.first_token_ms,
            "tool_calls": parameters.tool_calls,
            "max_files": enough,
        },
    )


def instruments(parameters: StreamingParameters, rung: Rung) -> tuple[Instrument, ...]:
    """Return the instruments of a rung; a batch has no chunks."""
    of_answers: list[Instrument] = [ServerCount(node=PROXY, item="completed"), StreamCost()]
    if rung.kind != "batch":
        of_answers.append(Chunks())
    if rung.is_search:
        search = UsersHeld(
            objectives=tuple(map(Objective.of_text, parameters.objectives)),
            start=SEARCH_START,
            most=parameters.search_most,
            tolerance=SEARCH_TOLERANCE,
            probe_s=parameters.probe_s,
            warmup_s=parameters.interval_s,
        )
        # The search comes first, so that the probe of the CPU's speed is right before the load.
        return (search, *STANDARD, *of_answers)
    at_stop = (BrokenOff(),) if rung.is_ramp and parameters.failures else ()
    return (*STANDARD, *of_answers, *at_stop)


def workload(parameters: StreamingParameters, rung: Rung) -> Workload:
    """Return a rung's load: paced users, users without pacing, or a ramp of users."""
    return Workload(
        request=request(rung.kind, PROXY, parameters.chunks_for_success + 1, parameters.tool_calls),
        arrivals=_ramp(parameters) if rung.is_ramp else _fixed(parameters, rung),
        timeout_s=parameters.timeout_s,
        stop=StopRules(failures=parameters.failures if rung.is_ramp else 0),
    )


def _fixed(parameters: StreamingParameters, rung: Rung) -> ClosedLoop:
    return ClosedLoop(
        users=parameters.users,
        duration_s=parameters.duration_s,
        warmup_s=parameters.warmup_s,
        # Users who join together would send together in every cycle.
        ramp_s=min(parameters.warmup_s, parameters.interval_s),
        pacing_s=parameters.interval_s if rung.is_paced else 0.0,
        max_duration_s=parameters.warmup_s + parameters.duration_s + parameters.timeout_s,
    )


def _ramp(parameters: StreamingParameters) -> ClosedLoop:
    """Return a ramp of users, who join evenly one after the other."""
    return ClosedLoop(
        users=parameters.stress_users,
        duration_s=parameters.ramp_s,
        ramp_s=parameters.ramp_s,
        pacing_s=parameters.interval_s,
        max_duration_s=parameters.ramp_s + parameters.timeout_s,
    )


def remarks_on(parameters: StreamingParameters) -> Sequence[Remark]:
    """Return remarks for readers of the plan on success, the failure threshold and capacity."""
    least = parameters.chunks_for_success
    text = (
        f"a stream succeeds with its last event and more than {least} chunks, which the client"
        " counts and does not parse; the model is a stand-in, whose schedule mostly sets how long"
        " an answer lasts"
    )
    remarks = [Remark(code="llm.success", text=text)]
    of_run = parameters.chosen_rungs.values()
    if parameters.failures and any(rung.is_ramp for rung in of_run):
        text = (
            f"users join until {parameters.failures} requests have failed; requests that are under"
            " way then go on to their end, but count in no time and no throughput"
        )
        remarks.append(Remark(code="llm.threshold", text=text))
    if any(rung.is_search for rung in of_run):
        text = (
            f"capacity is the most users that hold {' and '.join(parameters.objectives)}; versions"
            f" that are less than {SEARCH_TOLERANCE:.3g} apart may get the same number"
        )
        remarks.append(Remark(code="llm.capacity", text=text))
    return remarks


def _contrasts(parameters: StreamingParameters) -> list[Contrast]:
    stated = parameters.published_values()
    stated["ramp_kind"] = "stream"
    is_published = all(
        getattr(parameters, name) == stated[name] for name in (*OF_STRESS, *OF_ANSWER)
    )
    sized_limits = stated["limits"] if is_published else ()
    # Without a threshold nobody knows how many users there were when it was reached.
    limits = parameters.limits if parameters.failures else ()
    return contrasts(parameters.chosen_rungs, limits, parameters.ramp_kind, sized_limits)


EXPERIMENT = Experiment(
    name="llm_streaming",
    title="LLM proxy: streams, pacing and failures",
    question="Does a streaming proxy get better when it passes chunks through instead of making "
    "them anew, and what do pacing and a failure threshold do to the answer?",
    parameters=StreamingParameters,
    treatments=lambda parameters: treatments_of(
        parameters.chosen_rungs, parameters, levels, _stack, workload, instruments
    ),
    contrasts=_contrasts,
    warnings=remarks_on,
)
