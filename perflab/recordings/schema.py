"""What a recording holds: the run's record and the columns of its tables."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
RUN_FILE = "run.json"
TRIALS_FOLDER = "trials"
TABLES = ("trial", "requests", "samples", "waits")

REQUIRED_COLUMNS = {
    "trial": ("trial_id", "block", "position", "attempt", "treatment", "state", "reasons"),
    "requests": (
        "stage", "worker", "user", "planned_ns", "started_ns", "sent_ns", "first_byte_ns",
        "done_ns", "connect_ns", "status", "bytes", "error",
    ),
    "samples": ("t_ns", "service", "cpu_ns", "memory_bytes"),
    "waits": ("t_ns", "state", "wait_event_type", "wait_event", "count"),
}  # fmt: skip

RunState = Literal["running", "finished", "interrupted", "failed"]
Direction = Literal["greater", "smaller", "none"]


class ContrastPair(BaseModel):
    """Levels that select the two sides of a ratio."""

    model_config = ConfigDict(frozen=True)

    numerator: dict[str, str]
    denominator: dict[str, str]


class Contrast(BaseModel):
    """One comparison that the experiment makes, and what was published about it.

    With ``interaction`` the effect is the ratio of two ratios: this pair's over the other's.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    claim: str
    response: str
    numerator: dict[str, str]
    denominator: dict[str, str]
    interaction: ContrastPair | None = None
    published_ratio: float | None = None
    published_direction: Direction | None = None
    source: str = ""
    not_testable: str = ""


class TreatmentRecord(BaseModel):
    """A treatment's name, its levels, and how figures call it."""

    name: str
    levels: dict[str, str]
    label: str


class SessionRecord(BaseModel):
    """One stretch of measuring: boot and a pair of clocks, so that instants can be dated."""

    boot_id: str
    monotonic_ns: int
    realtime_ns: int
    pid: int
    at: str


class RunRecord(BaseModel):
    """``run.json``: everything about a run that is not a table."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    experiment: str
    title: str
    question: str
    state: RunState
    reason: str = ""
    created_at: str
    finished_at: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    factors: dict[str, list[str]] = Field(default_factory=dict)
    treatments: list[TreatmentRecord] = Field(default_factory=list)
    blocks: int
    seed: int
    order: list[list[str]] = Field(default_factory=list)
    backend: str
    network_path: str
    placement: dict[str, Any] = Field(default_factory=dict)
    images: dict[str, str] = Field(default_factory=dict)
    contrasts: list[Contrast] = Field(default_factory=list)
    environment: dict[str, Any] = Field(default_factory=dict)
    code: dict[str, Any] = Field(default_factory=dict)
    sessions: list[SessionRecord] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    superseded: list[str] = Field(default_factory=list)
    notes: dict[str, Any] = Field(default_factory=dict)


def trial_id(block: int, position: int, attempt: int) -> str:
    """Return the identity of a trial, which is also its folder's name."""
    return f"b{block:03d}-p{position:02d}-a{attempt}"
