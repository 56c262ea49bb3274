"""What a recording holds: the record of a run, and the columns of its tables.

Instants are CLOCK_MONOTONIC nanoseconds; an instant of 0 never came. Durations and other units
are named in the columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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
# Every trial has these; the others only where there was something to measure.
ALWAYS = ("requests", "samples")
TABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")
OWN_FILES = ("trial", "manifest", *ALWAYS)
COLUMN_TYPES = {
    str(kind): kind
    for kind in (
        pa.string(), pa.bool_(), pa.binary(), pa.float32(), pa.float64(), pa.int8(), pa.int16(),
        pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    )
}  # fmt: skip


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TreatmentRecord(_Record):
    """One combination of levels: its name in the tables and its label in figures.

    ``parts`` says under which key each of its parts (stack, workload...) stands in the run's.
    """

    name: str
    levels: dict[str, str]
    label: str = ""
    parts: dict[str, str] = Field(default_factory=dict)


class Response(_Record):
    """A number of a trial that can be compared, as the system declares it that measured it.

    ``name`` is the column of the trials; one ``*`` in it stands for the name of a service, a phase
    or a function (``cpu_share_*``), and for the same name in the words. ``title`` is what it is
    called in sentences ("p99 of the response time"), ``noun`` what more of it is more of, at an
    axis ("response time"; the title where there is none), ``heading`` the same in a narrow table
    ("p99 ms"); ``better`` says which way an improvement goes. What is ``typical`` stands in every
    summary.
    """

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*(\*[A-Za-z0-9_]*)?$", max_length=200)
    title: str
    unit: str = ""
    heading: str = ""
    noun: str = ""
    better: Literal["more", "less", "neither"] = "neither"
    typical: bool = False


class Steady(_Record):
    """By what a trial shows whether it was steady: what came when, between two instants.

    ``kind`` is a kind of messages that came over streams; without one it is requests.
    ``begin_column`` and ``end_column`` are columns of the trials with the instants, in ns; without
    them it is the whole measured stage.
    """

    kind: str = ""
    begin_column: str = ""
    end_column: str = ""


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
    ``not_testable`` is the reason why this machine cannot test it; ``set_by_load`` says how the
    load itself sets the answer, so that no measurement can find it. ``source`` says where it was
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
    set_by_load: str = ""

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

    ``order`` has the names of the treatments as they ran, for each of the ``blocks``. ``tables``
    are those that instruments add to every trial: the types of the columns, by table. ``parts`` are
    what treatments share, by key: their stacks with all settings, their workloads, the instruments
    that looked on, and what their services ``reported`` of their settings. ``versions`` are those
    of all that is installed in each service.
    """

    schema_version: int = Field(default=SCHEMA_VERSION, ge=1, le=SCHEMA_VERSION, strict=True)
    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=200)
    experiment: str
    system: str = ""
    title: str
    question: str
    responses: list[Response] = Field(default_factory=list)
    steady: Steady = Field(default_factory=Steady)
    tables: dict[str, dict[str, str]] = Field(default_factory=dict)
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
    versions: dict[str, dict[str, str]] = Field(default_factory=dict)
    parts: dict[str, Any] = Field(default_factory=dict)
    reported: dict[str, str] = Field(default_factory=dict)
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

    @model_validator(mode="after")
    def _tables_can_be(self) -> RunRecord:
        try:
            schemas(self)
        except RecordingError as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _parts_are_there(self) -> RunRecord:
        keys = {key for item in self.treatments for key in item.parts.values()}
        missing = sorted({*keys, *self.reported.values()} - set(self.parts))
        if missing:
            raise ValueError(f"its parts lack {', '.join(missing[:3])}")
        return self

    def whole(self, treatment: str) -> dict[str, Any]:
        """Return all parts of a treatment by name: its stack, its workload, who looked on."""
        (found,) = (item for item in self.treatments if item.name == treatment)
        return {name: self.parts[key] for name, key in found.parts.items()}

    def reported_by(self, treatment: str) -> dict[str, Any] | None:
        """Return what the services of a treatment said of their settings, by node; None so far."""
        key = self.reported.get(treatment)
        return None if key is None else dict(self.parts[key])

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


def schemas(record: RunRecord) -> dict[str, pa.Schema]:
    """Return the schema of every table that trials of a run may have, by name.

    Raises
    ------
    RecordingError
        A declared table is not one that can be.
    """
    added = {name: declared_schema(name, columns) for name, columns in record.tables.items()}
    return {**added, **TABLES}


def declared_schema(name: str, columns: Mapping[str, str]) -> pa.Schema:
    """Return the schema of a table that an instrument adds.

    Raises
    ------
    RecordingError
        The name is the lab's own or no name, it has no column, or a column has an unknown type.
    """
    if not TABLE_NAME.fullmatch(name) or name in OWN_FILES:
        raise RecordingError(
            f"no table can be called {name!r:.100}: small letters, digits and _ are allowed, a "
            f"letter first, and none of {', '.join(OWN_FILES)}"
        )
    try:
        found = pa.schema([(each, COLUMN_TYPES[kind]) for each, kind in columns.items()])
    except KeyError as error:
        kinds = ", ".join(COLUMN_TYPES)
        raise RecordingError(f"table {name}: no column type {error}; there are: {kinds}") from None
    if not len(found):
        raise RecordingError(f"table {name}: has no column")
    if name in TABLES and found != TABLES[name]:
        raise RecordingError(f"table {name}: the lab has one of that name with other columns")
    return found


def described_schema(schema: pa.Schema) -> dict[str, str]:
    """Return the types of a table's columns as they stand in a record."""
    return {field.name: str(field.type) for field in schema}


def check_columns(schema: pa.Schema, kind: str, names: Iterable[str], where: str) -> None:
    """Refuse a table that lacks columns of its schema.

    Raises
    ------
    RecordingError
        Names the table, the place and the columns.
    """
    given = set(names)
    missing = [name for name in schema.names if name not in given]
    if missing:
        raise RecordingError(f"{where}: the {kind} table lacks {', '.join(missing)}")
