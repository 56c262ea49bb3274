"""The record of a run, ``run.json``: everything about the run except its measurements.

A record may be damaged or edited, so everything in it is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import from_json

from perflab.errors import RecordingError
from perflab.recordings.columns import TURNS, schemas
from perflab.recordings.design import Design
from perflab.recordings.published_results import Contrast, ContrastPair
from perflab.statistics.interim_analysis import UntilDecided

Side = Literal["client", "server", "unknown"]
# The form of the codes of remarks; the codes of a system begin with its name.
CODE = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"
# Every change of the content of recordings takes the next number. Other numbers are refused.
SCHEMA_VERSION = 6
# An experiment's parameters allow 1,000 blocks; tables have a row for every block.
MOST_BLOCKS = 10_000
MOST_TREATMENTS = 1_000
LARGEST_SEED = 2**64 - 1
FILE = "run.json"
SHOWN_ERRORS = 3
RunState = Literal["running", "finished", "interrupted", "failed"]
TrialState = Literal["valid", "invalid", "failed"]
# An instant fits into an int64 column of a table.
Instant = Annotated[int, Field(ge=0, lt=2**63)]
# It stands in the place of the backend.
BACKEND = "imported"


class Remark(BaseModel):
    """A sentence about a trial or a run; ``str`` gives the sentence.

    ``code`` is its kind; ``side`` is whom it concerns.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str = Field(pattern=CODE, max_length=100)
    side: Side = "unknown"
    text: str

    def __str__(self) -> str:
        return self.text

    def __contains__(self, words: str) -> bool:
        """Return whether the sentence contains these words."""
        return words in self.text


class Reason(Remark):
    """Why a trial may not be used; ``side`` says whose fault that is.

    ``client``: the load generator or its script, so the trial says nothing about the service.
    ``server``: only the service, for example because it is overloaded. ``unknown``: the machine,
    or either of the two.
    """


def fault(reasons: Iterable[Reason]) -> Side:
    """Return whose fault it is that a trial may not be used.

    One reason of the client is enough for ``client``, because others may follow from it. It is
    ``server`` only where all reasons are.
    """
    sides = {reason.side for reason in reasons}
    if "client" in sides:
        return "client"
    return "server" if sides == {"server"} else "unknown"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TreatmentRecord(_Record):
    """One combination of levels: its name in the tables and its label in figures.

    ``parts`` gives, for each of its parts (stack, workload...), the key in the run's ``parts``.
    """

    name: str
    levels: dict[str, str]
    label: str = ""
    parts: dict[str, str] = Field(default_factory=dict)


class Response(_Record):
    """A number of a trial that can be compared, as its system declares it.

    ``name`` is the column of the trials. A ``*`` in it stands for the name of a service, a phase or
    a function (``cpu_share_*``), in the words too. ``title`` is its name in sentences ("p99 of the
    response time"), ``noun`` its name at an axis ("response time"; by default the title),
    ``heading`` its name in a narrow table ("p99 ms"). ``better`` is the direction of an
    improvement. A ``typical`` response stands in every summary.
    """

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*(\*[A-Za-z0-9_]*)?$", max_length=200)
    title: str
    unit: str = ""
    heading: str = ""
    noun: str = ""
    better: Literal["more", "less", "neither"] = "neither"
    typical: bool = False


class SessionRecord(_Record):
    """One process that measured; its boot and its two clock readings date its instants."""

    boot_id: str
    monotonic_ns: Instant
    realtime_ns: Instant
    pid: Instant
    at: str


class RunRecord(_Record):
    """The content of ``run.json``: everything about a run except its measurements.

    ``order`` has the names of the treatments in the order of their trials, for each of the
    ``blocks``. ``tables`` has the column types of the tables that instruments add to every trial.
    ``parts`` are shared by treatments, by key: stacks with all settings, workloads, instruments,
    and the settings that services ``reported``. ``versions`` are those of all packages in each
    service. ``until_decided`` is the rule by which blocks were added, where their number was not
    fixed; ``blocks`` is then the largest allowed number, and the actual one once the rule ended the
    run. ``design`` is None until it is chosen.
    """

    schema_version: int = Field(SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION, strict=True)
    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=200)
    experiment: str
    system: str = ""
    title: str
    question: str
    responses: list[Response] = Field(default_factory=list)
    # Older records hold it; nothing reads it.
    steady: dict[str, Any] = Field(default_factory=dict)
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
    design: Design | None = None
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
    def labels(self) -> dict[str, str]:
        """The label of each treatment by its name; the name itself where it has none."""
        return {item.name: item.label or item.name for item in self.treatments}

    @property
    def shares_time(self) -> bool:
        """Whether the trials of a block took turns in slices."""
        return TURNS in self.tables

    @property
    def commit(self) -> str:
        """The commit that measured the run, marked "+changes" when the tree was dirty."""
        name = str(self.code.get("commit") or "")[:10] or "unknown"
        return f"{name}+changes" if self.code.get("dirty") else name

    @property
    def shared_cores(self) -> str:
        """What shares cores on the machine; empty where nothing does."""
        return str(dict(self.placement).get("shared") or "")

    @property
    def state_text(self) -> str:
        """The state in words; a record that says "running" may be that of a killed run."""
        return "not finished" if self.state == "running" else self.state

    @model_validator(mode="after")
    def _order_fits(self) -> RunRecord:
        names = sorted(treatment.name for treatment in self.treatments)
        if len(set(names)) < len(names):
            raise ValueError("two treatments have one name")
        if len(self.order) != self.blocks:
            raise ValueError(f"order has {len(self.order)} blocks, not {self.blocks}")
        for block, order in enumerate(self.order):
            if sorted(order) != names:
                raise ValueError(f"order of block {block}: it does not hold each treatment once")
        return self

    @model_validator(mode="after")
    def _blocks_fit_their_rule(self) -> RunRecord:
        rule = self.until_decided
        if rule is None:
            return self
        expected = rule.looks[-1].blocks if rule.ended and rule.looks else rule.most_blocks
        if self.blocks != expected:
            raise ValueError(
                f"blocks is {self.blocks}; by the rule of until_decided it is {expected}"
            )
        return self

    @model_validator(mode="after")
    def _design_is_chosen(self) -> RunRecord:
        if self.design is not None and self.design.kind == "auto":
            raise ValueError("design is auto; a run has trials or slices")
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
        """Return the number of blocks, with the rule where the number was not fixed."""
        rule = self.until_decided
        return f"{self.blocks} ({rule.text()})" if rule else str(self.blocks)

    def whole(self, treatment: str) -> dict[str, Any]:
        """Return all parts of a treatment by name: its stack, its workload, its instruments."""
        (record,) = (item for item in self.treatments if item.name == treatment)
        return {name: self.parts[key] for name, key in record.parts.items()}

    def reported_by(self, treatment: str) -> dict[str, Any] | None:
        """Return the settings that a treatment's services reported, by node; None before."""
        key = self.reported.get(treatment)
        return None if key is None else dict(self.parts[key])

    def selected(self, levels: dict[str, str]) -> list[str]:
        """Return the names of the treatments that have all of ``levels``."""
        return [item.name for item in self.treatments if levels.items() <= item.levels.items()]

    def compared_pairs(self) -> list[tuple[str, str]]:
        """Return every pair of treatments that some claim compares, numerator first, once.

        If a claim has several treatments a side, the pairs are equal in all other factors.
        """
        pairs: dict[frozenset[str], tuple[str, str]] = {}
        for contrast in self.contrasts:
            if contrast.not_testable or contrast.scale == "level":
                continue
            for sides in filter(None, (contrast, contrast.interaction)):
                for pair in self._matched(sides):
                    pairs.setdefault(frozenset(pair), pair)
        return list(pairs.values())

    def _matched(self, sides: ContrastPair) -> Iterator[tuple[str, str]]:
        above, below = (self.selected(levels) for levels in (sides.numerator, sides.denominator))
        varied = {*sides.numerator, *sides.denominator}
        rest = {
            item.name: {
                factor: level for factor, level in item.levels.items() if factor not in varied
            }
            for item in self.treatments
        }
        alone = len(above) == len(below) == 1
        for one in above:
            yield from ((one, other) for other in below if alone or rest[one] == rest[other])


def read_record(path: Path) -> RunRecord:
    """Read the record in a run's folder.

    RecordingError where it is missing, damaged, contradictory, or of another schema version.
    """
    file = path / FILE
    try:
        words = from_json(file.read_bytes(), allow_inf_nan=False)
        version = words["schema_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise RecordingError(f"{path}: is not a run (it holds no {FILE})") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{file}: is damaged or unreadable: {error!r:.300}") from error
    if type(version) is int and version != SCHEMA_VERSION:
        raise RecordingError(
            f"{file}: has schema version {str(version)[:20]}, and this perflab reads only version "
            f"{SCHEMA_VERSION}; read it with the perflab that wrote it, or measure anew"
        )
    try:
        return RunRecord.model_validate(words)
    except ValidationError as error:
        raise RecordingError(f"{file}: is not a valid record: {_first_problems(error)}") from error


def _first_problems(error: ValidationError) -> str:
    """Return the first problems as text."""
    listed = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [
        f"{'.'.join(map(str, item['loc'])) or 'the record'}: {item['msg']}"[:300]
        for item in listed[:SHOWN_ERRORS]
    ]
    more = f"; and {len(listed) - SHOWN_ERRORS} more" if len(listed) > SHOWN_ERRORS else ""
    return "; ".join(shown) + more


def is_imported(record: RunRecord) -> bool:
    """Return whether a run holds results of another tool."""
    return record.backend == BACKEND
