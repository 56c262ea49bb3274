"""Parameters of the experiment on streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from perflab.load.workload import Objective
from perflab.systems.llm.rungs import Rung, Set, chosen, published_settings
from perflab.trials.experiment import Preset
from perflab.trials.ladders import LadderParameters, among

Limit = Annotated[int, Field(ge=64, le=1_000_000)]


class StreamingParameters(LadderParameters):
    """Parameters of the experiment on streams."""

    preset: Preset = Field(
        default="quick",
        description="published: the study's users, cycle, length and threshold for whatever is not "
        "given; the model's speed and the answers' length it does not state",
    )
    sets: tuple[Set, ...] = Field(
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
        description="constant cycle of every user: the wait is the interval without the time taken",
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
        default=8.0, ge=1, le=86_400, description="seconds in which they join, evenly"
    )
    failures: int = Field(
        default=5, ge=1, le=1_000_000, description="failures that end a trial of the set 'limits'"
    )
    objectives: tuple[str, ...] = Field(
        default=("ttft_p95<250ms", "gap_p99<100ms"),
        min_length=1,
        description="of the set 'capacity': what a number of users must hold, on the time to the "
        "first chunk (ttft), gaps between chunks (gap) or the whole answer (p95<2s)",
    )
    search_most: int = Field(
        default=1000, ge=1, le=10_000, description="most users that the search may try"
    )
    probe_s: float = Field(
        default=4.0,
        ge=0.5,
        le=3600,
        description="seconds of each of its steps that count, after a cycle in which users join",
    )
    timeout_s: float = Field(
        default=5.0, gt=0, le=3600, description="seconds after which an answer has failed"
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return the values of the preset."""
        return published_settings()

    def offered(self) -> Mapping[str, Rung]:
        """Return every rung of the chosen sets, by name."""
        return chosen(self.sets, self.limits)

    @model_validator(mode="after")
    def _leaves_room_in_the_cycle(self) -> StreamingParameters:
        answer_s = self.first_token_ms / 1e3 + (self.tokens - 1) / self.token_rate
        if answer_s >= self.interval_s:
            raise ValueError(
                f"an answer takes {answer_s:g} s, the cycle is {self.interval_s:g} s: no user "
                "could keep it; make interval_s longer or tokens fewer"
            )
        return self

    @field_validator("objectives")
    @classmethod
    def _are_objectives(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        for text in texts:
            Objective.of_text(text)
        return texts


def rungs(parameters: StreamingParameters) -> dict[str, Rung]:
    """Return the rungs of a run, by name."""
    return among(parameters.offered(), parameters.rungs)
