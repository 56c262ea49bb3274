"""The record of a run: everything about it but its measurements.

``run.json`` may come from somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import from_json

from perflab.errors import RecordingError
from perflab.recordings.columns import TURNS, schemas
from perflab.recordings.contrasts import Contrast
from perflab.recordings.files import read_plain
from perflab.statistics.until_decided import UntilDecided

Side = Literal["client", "server", "unknown"]
# What the lab and its systems say is told apart by code; a system's own begin with its name.
CODE = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"


class Remark(BaseModel):
    """A sentence about a trial or a run, and as text that sentence.

    ``code`` says of which kind it is, ``side`` whom it tells of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str = Field(pattern=CODE, max_length=100)
    side: Side = "unknown"
    text: str

    def __str__(self) -> str:
        return self.text

    def __contains__(self, words: str) -> bool:
        """Say whether the sentence has these words."""
        return words in self.text


class Reason(Remark):
    """Why a trial may not be used; ``side`` says whose fault that is.

    ``client``: the load generator or its script, so that the trial says nothing of the service.
    ``server``: what only the service does, an overloaded one above all. ``unknown``: the machine,
    or what either of them may have done.
    """


def fault(reasons: Iterable[Reason]) -> Side:
    """Return whose fault it is that a trial may not be used.

    The client's as soon as one reason is: what else went wrong may follow from it. The server's
    only where all reasons are; else nobody can be blamed.
    """
    found = {reason.side for reason in reasons}
    if "client" in found:
        return "client"
    return "server" if found == {"server"} else "unknown"


# Every change of what a recording holds takes the next number; recordings of other numbers are
# refused.
SCHEMA_VERSION = 6
# An experiment's parameters allow 1,000 blocks; tables have a row for every block.
MOST_BLOCKS = 10_000
MOST_TREATMENTS = 1_000
LARGEST_SEED = 2**64 - 1
FILE = "run.json"
# The largest record of the lab's own, 1,000 blocks of 60 treatments, has 5 MB.
LARGEST_BYTES = 16 * 2**20
SHOWN_ERRORS = 3

RunState = Literal["running", "finished", "interrupted", "failed"]
TrialState = Literal["valid", "invalid", "failed"]
# What an int64 column of a table can hold.
Instant = Annotated[int, Field(ge=0, lt=2**63)]


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


class SessionRecord(_Record):
    """One process that measured: its boot and a pair of clocks that date its instants."""

    boot_id: str
    monotonic_ns: Instant
    realtime_ns: Instant
    pid: Instant
    at: str


class DesignRecord(_Record):
    """How the trials of a block shared its time; ``slice_ms`` where they did, ``why`` if chosen."""

    kind: Literal["trials", "slices"]
    slice_ms: float | None = None
    why: str = ""


class RunRecord(_Record):
    """Everything about a run but its measurements; the contents of ``run.json``.

    ``order`` has the names of the treatments as they ran, for each of the ``blocks``. ``tables``
    are those that instruments add to every trial: the types of the columns, by table. ``parts`` are
    what treatments share, by key: their stacks with all settings, their workloads, the instruments
    that looked on, and what their services ``reported`` of their settings. ``versions`` are those
    of all that is installed in each service. ``until_decided`` is the rule by which blocks were
    added, where their number was not fixed before: ``blocks`` are then the most there may be, and
    those there are once the run ended by the rule. ``design`` is None until it is settled.
    """

    schema_version: int = Field(SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION, strict=True)
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
    until_decided: UntilDecided | None = None
    design: DesignRecord | None = None
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
    warnings: list[Remark] = Field(default_factory=list)
    superseded: list[str] = Field(default_factory=list)
    notes: dict[str, Any] = Field(default_factory=dict)

    @property
    def shares_time(self) -> bool:
        """Whether the trials of a block ran in the same stretch of time, each in windows."""
        return TURNS in self.tables

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
    def _blocks_fit_their_rule(self) -> RunRecord:
        rule = self.until_decided
        if rule is None:
            return self
        wanted = rule.looks[-1].blocks if rule.ended and rule.looks else rule.most_blocks
        if self.blocks != wanted:
            raise ValueError(
                f"blocks is {self.blocks}; by the rule of until_decided it is {wanted}"
            )
        return self

    @model_validator(mode="after")
    def _tables_can_be(self) -> RunRecord:
        try:
            schemas(self.tables)
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

    def blocks_text(self) -> str:
        """Return how many blocks there are, and by which rule where their number was not fixed."""
        rule = self.until_decided
        return f"{self.blocks} ({rule.text()})" if rule else str(self.blocks)

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


def read_record(path: Path) -> RunRecord:
    """Read the record in a run's folder.

    RecordingError where there is none, it is damaged or contradicts itself, or has another schema.
    """
    file = path / FILE
    try:
        words = from_json(read_plain(file, LARGEST_BYTES), allow_inf_nan=False)
        version = words["schema_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise RecordingError(f"{path}: is not a run (it holds no {FILE})") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{file}: is damaged or unreadable: {error!r:.300}") from error
    if type(version) is int and version != SCHEMA_VERSION:
        raise RecordingError(
            f"{file}: has schema version {str(version)[:20]}, this perflab reads {SCHEMA_VERSION} "
            "alone; read it with the perflab that wrote it, or measure anew"
        )
    try:
        return RunRecord.model_validate(words)
    except ValidationError as error:
        raise RecordingError(f"{file}: is not a valid record: {_first_of(error)}") from error


def _first_of(error: ValidationError) -> str:
    """Say the first things that are wrong."""
    listed = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [
        f"{'.'.join(map(str, each['loc'])) or 'the record'}: {each['msg']}"[:300]
        for each in listed[:SHOWN_ERRORS]
    ]
    more = f"; and {len(listed) - SHOWN_ERRORS} more" if len(listed) > SHOWN_ERRORS else ""
    return "; ".join(shown) + more
