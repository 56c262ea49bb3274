"""The journal of a sweep: one line of JSON per event, which a kill cannot damage.

A line counts once its newline is on the disk. A line that a kill cut off is removed before the next
line is written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from perflab.errors import RecordingError
from perflab.host.files import explained

FILE = "journal.jsonl"
BROKEN_OFF = "broken off"
# The class of the error where the user or a signal ended a cell in order.
INTERRUPTED = "RunInterrupted"
# After these errors a run cannot be resumed: the next attempt measures anew.
NOT_TO_BE_RESUMED = ("ResumeRefused", "RunNotFound", "RecordingError")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    at: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))


class SessionBegun(_Entry):
    """A session of the sweep began: its cells, its code and its machine."""

    event: Literal["session"] = "session"
    cells: tuple[str, ...]
    sources: dict[str, str]
    machine: dict[str, Any]


class AttemptBegun(_Entry):
    """A cell began; ``goes_on_with`` is the run that it resumes or shows.

    ``host`` names the host that executes it, where that may be another than the journal's.
    """

    event: Literal["begun"] = "begun"
    cell: str
    attempt: int = Field(ge=1)
    goes_on_with: str = ""
    host: str = ""


class RunMade(_Entry):
    """The current cell made a run."""

    event: Literal["run"] = "run"
    cell: str
    run_id: str


class AttemptEnded(_Entry):
    """A cell's notebook ended or failed; ``kind`` is the class of the error.

    ``verdicts`` are claim, verdict and measured size. Paths are absolute. ``stored`` is the address
    of the copy of its run; the paths then lead to copies, too.
    """

    event: Literal["ended"] = "ended"
    cell: str
    attempt: int = Field(ge=1)
    done: bool
    seconds: float
    run_id: str = ""
    notebook: str = ""
    log: str = ""
    kind: str = ""
    error: str = ""
    infrastructure: bool = False
    figures: tuple[str, ...] = ()
    valid_trials: int = 0
    trials: int = 0
    verdicts: tuple[tuple[str, str, str], ...] = ()
    host: str = ""
    stored: str = ""

    @property
    def in_short(self) -> str:
        """How it ended, in one line."""
        return "done" if self.done else f"{self.kind}: {self.error.strip().partition(chr(10))[0]}"


Line = SessionBegun | AttemptBegun | RunMade | AttemptEnded
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="event")])


@dataclass
class Attempt:
    """One execution of a cell; without ``ended`` it was broken off or is still running.

    ``run_id`` is the run that it made.
    """

    begun: AttemptBegun
    ended: AttemptEnded | None = None
    run_id: str = ""

    @property
    def outcome(self) -> str:
        """How it ended, in a word."""
        if self.ended is None:
            return BROKEN_OFF
        if self.ended.kind == INTERRUPTED:
            return "interrupted"
        return "done" if self.ended.done else "failed"


@dataclass
class CellState:
    """The attempts at one cell; ``run_id`` is the last run that they made."""

    attempts: list[Attempt] = field(default_factory=list)
    run_id: str = ""

    @property
    def state(self) -> str:
        """One of waiting, broken off, interrupted, done and failed."""
        return self.attempts[-1].outcome if self.attempts else "waiting"


class Journal:
    """The journal in a sweep's folder; RecordingError names a line that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.sessions: list[SessionBegun] = []
        self._cells: dict[str, CellState] = {}
        lines, self._whole_bytes = _read(self.path)
        for line in lines:
            self._take(line)

    def cell(self, name: str) -> CellState:
        """Return the state of a cell."""
        return self._cells.setdefault(name, CellState())

    def add(self, line: Line) -> None:
        """Write a line, which is on the disk when this returns; the caller must hold the lock."""
        unharmed = "what the journal holds already is safe; go on with --resume"
        with explained(self.path, unharmed, "point PERFLAB_SWEEPS at another folder"):
            content = line.model_dump_json().encode() + b"\n"
            with self.path.open("ab") as file:
                # A line that a kill cut off was never reported as written.
                file.truncate(self._whole_bytes)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        self._whole_bytes += len(content)
        self._take(line)

    def _take(self, line: Line) -> None:
        match line:
            case SessionBegun():
                self.sessions.append(line)
            case AttemptBegun():
                self.cell(line.cell).attempts.append(Attempt(line))
            case RunMade():
                self.cell(line.cell).run_id = line.run_id
                self.cell(line.cell).attempts[-1].run_id = line.run_id
            case AttemptEnded():
                state = self.cell(line.cell)
                state.attempts[-1].ended = line
                state.run_id = line.run_id or state.run_id


def _read(path: Path) -> tuple[list[Line], int]:
    """Return the whole lines, and their length in bytes."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    *whole, cut_off = content.split(b"\n")
    lines = []
    for number, text in enumerate(whole, 1):
        try:
            lines.append(_LINE.validate_json(text))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]["msg"]
            raise RecordingError(
                f"{path}:{number}: is no line of a journal ({first}); mend it, or begin the sweep "
                "anew without --resume"
            ) from None
    return lines, len(content) - len(cut_off)
