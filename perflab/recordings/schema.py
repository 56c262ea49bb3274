"""What a recording holds: the record of a run, and the columns of its tables.

Instants are CLOCK_MONOTONIC nanoseconds; an instant of 0 never came. Durations and other units
are named in the columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from perflab.errors import RecordingError

SCHEMA_VERSION = 2
# An experiment's parameters allow 1,000 blocks; tables have a row for every block.
MOST_BLOCKS = 10_000
MOST_TREATMENTS = 1_000
LARGEST_SEED = 2**64 - 1

RunState = Literal["running", "finished", "interrupted", "failed"]
TrialState = Literal["valid", "invalid", "failed"]
Direction = Literal["greater", "smaller", "none"]
Scale = Literal["ratio", "difference"]
# What an int64 column of a table can hold.
Instant = Annotated[int, Field(ge=0, lt=2**63)]

TRIAL_ID = re.compile(r"b(\d{3,})-p(\d{2,})-a(\d+)")
PHASE_COLUMN = re.compile(r"phase_(.+)_ms")

REQUESTS = pa.schema(
    [
        ("stage", pa.string()),
        ("worker", pa.int16()),
        ("user", pa.int32()),
        ("planned_ns", pa.int64()),
        ("started_ns", pa.int64()),
        ("sent_ns", pa.int64()),
        ("first_byte_ns", pa.int64()),
        ("done_ns", pa.int64()),
        ("connect_ns", pa.int64()),
        ("status", pa.int16()),
        ("bytes", pa.int64()),
        ("error", pa.string()),
    ]
)
SAMPLES = pa.schema(
    [
        ("t_ns", pa.int64()),
        ("service", pa.string()),
        ("cpu_ns", pa.int64()),
        ("memory_bytes", pa.int64()),
    ]
)
WAITS = pa.schema(
    [
        ("t_ns", pa.int64()),
        ("state", pa.string()),
        ("wait_event_type", pa.string()),
        ("wait_event", pa.string()),
        ("count", pa.int32()),
    ]
)
STACKS = pa.schema([("stack", pa.string()), ("samples", pa.int64())])
# Every message of a stream. ``planned_ns``: when the sending was due, also for what it led to (its
# delivery, its answer). ``at_ns`` of a row ``sent``: when the generator took the sending up, before
# anything was encoded, as *started* is of a request. Of a row ``received``: when the event loop
# handed over the read that completed the message. ``connected``, ``left`` and ``cut`` are no
# messages: there it is when that came to be.
MESSAGES = pa.schema(
    [
        ("worker", pa.int16()),
        ("user", pa.int32()),
        ("direction", pa.string()),
        ("kind", pa.string()),
        ("planned_ns", pa.int64()),
        ("at_ns", pa.int64()),
        ("bytes", pa.int32()),
    ]
)
TABLES = {
    "requests": REQUESTS,
    "samples": SAMPLES,
    "waits": WAITS,
    "messages": MESSAGES,
    "stacks": STACKS,
}
# Written only where there is something to measure; a run without them is whole.
OPTIONAL = ("waits", "messages", "stacks")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TreatmentRecord(_Record):
    """One combination of levels: its name in the tables and its label in figures."""

    name: str
    levels: dict[str, str]
    label: str = ""


class Response(_Record):
    """A number of a trial that can be compared, as the system declares it that measured it.

    ``name`` is the column of the trials; one ``*`` in it stands for the name of a service, a phase
    or a function (``cpu_share_*``). ``title`` says what more of it is more of ("throughput", where
    ``*`` stands for the same name), ``heading`` the same in a narrow table ("p99 ms"); ``better``
    says which way an improvement goes. What is ``typical`` stands in every summary.
    """

    name: str
    title: str
    unit: str = ""
    heading: str = ""
    better: Literal["more", "less", "neither"] = "neither"
    typical: bool = False


class ContrastPair(_Record):
    """Two sets of levels, each of which selects treatments."""

    numerator: dict[str, str]
    denominator: dict[str, str]


class Contrast(ContrastPair):
    """A published claim as a ratio of one response between two sets of treatments.

    With ``interaction`` the effect is the ratio of this pair's ratio to that pair's.
    ``published_direction`` says whether the ratio is above 1 ("greater"), below ("smaller"), or
    claimed to be 1 ("none"). With ``scale`` "difference" the effect is numerator minus denominator
    in the response's unit, for claims such as "10 points of CPU more"; it is above or below 0.
    ``not_testable`` is the reason why this machine cannot test it. ``source`` says where it was
    published; only what was published nowhere has none.
    """

    name: str
    claim: str
    response: str
    scale: Scale = "ratio"
    interaction: ContrastPair | None = None
    published_ratio: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    published_difference: float | None = Field(default=None, allow_inf_nan=False)
    published_direction: Direction | None = None
    source: str = ""
    not_testable: str = ""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Contrast:
        direction, ratio = self.published_direction, self.published_ratio
        sizes = (direction, ratio, self.published_difference)
        if not self.source and any(published is not None for published in sizes):
            raise ValueError("it needs a source: where was its size or direction published?")
        if self.scale == "difference":
            return self._agrees_as_difference()
        if self.published_difference is not None:
            raise ValueError("published_difference needs scale 'difference'")
        if ratio is not None and _against(direction, ratio, 1):
            raise ValueError(f"published_ratio {ratio} is not '{direction}' than 1")
        return self

    def _agrees_as_difference(self) -> Contrast:
        direction, size = self.published_direction, self.published_difference
        if self.published_ratio is not None:
            raise ValueError("a difference is compared with published_difference, not with a ratio")
        if direction == "none" or size == 0:
            raise ValueError("'no effect' is judged by a ratio: a unit has no margin of its own")
        if size is not None and _against(direction, size, 0):
            raise ValueError(f"published_difference {size} is not '{direction}' than 0")
        return self


def _against(direction: Direction | None, published: float, nothing: float) -> bool:
    return (direction == "greater" and published <= nothing) or (
        direction == "smaller" and published >= nothing
    )


class SessionRecord(_Record):
    """One process that measured: its boot and a pair of clocks that date its instants."""

    boot_id: str
    monotonic_ns: Instant
    realtime_ns: Instant
    pid: Instant
    at: str


class RunRecord(_Record):
    """Everything about a run but its measurements; the contents of ``run.json``.

    ``order`` has the names of the treatments as they ran, for each of the ``blocks``.
    """

    schema_version: int = Field(default=SCHEMA_VERSION, ge=1, le=SCHEMA_VERSION, strict=True)
    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=200)
    experiment: str
    system: str = ""
    title: str
    question: str
    responses: list[Response] = Field(default_factory=list)
    state: RunState = "running"
    reason: str = ""
    created_at: str
    finished_at: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    factors: dict[str, list[str]] = Field(default_factory=dict)
    treatments: list[TreatmentRecord] = Field(max_length=MOST_TREATMENTS)
    blocks: int = Field(ge=1, le=MOST_BLOCKS)
    seed: int = Field(ge=0, le=LARGEST_SEED)
    order: list[list[str]]
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

    @model_validator(mode="after")
    def _order_fits(self) -> RunRecord:
        names = sorted(treatment.name for treatment in self.treatments)
        if len(set(names)) < len(names):
            raise ValueError("two treatments have one name")
        if len(self.order) != self.blocks:
            raise ValueError(f"order has {len(self.order)} blocks, not {self.blocks}")
        for block, order in enumerate(self.order):
            if sorted(order) != names:
                raise ValueError(f"order of block {block}: is not each treatment once")
        return self

    def selected(self, levels: dict[str, str]) -> list[str]:
        """Return the names of the treatments that have all of ``levels``."""
        return [item.name for item in self.treatments if levels.items() <= item.levels.items()]


def trial_id(block: int, position: int, attempt: int) -> str:
    """Return the name of a trial's folder, which sorts in the order the trials ran."""
    return f"b{block:03d}-p{position:02d}-a{attempt}"


def parse_trial_id(name: str) -> tuple[int, int, int]:
    """Return block, position and attempt.

    Raises
    ------
    RecordingError
        The name is not a trial's.
    """
    match = TRIAL_ID.fullmatch(name)
    if match is None:
        raise RecordingError(f"'{name}' is not a trial id (b<block>-p<position>-a<attempt>)")
    block, position, attempt = (int(part) for part in match.groups())
    return block, position, attempt


def check_columns(kind: str, names: Iterable[str], where: str) -> None:
    """Refuse a table that lacks columns of its schema.

    Raises
    ------
    RecordingError
        Names the table, the place and the columns.
    """
    missing = [name for name in TABLES[kind].names if name not in set(names)]
    if missing:
        raise RecordingError(f"{where}: the {kind} table lacks {', '.join(missing)}")
