"""The folder of a sweep: its journal, its lock, a copy of its file, and the page of its results.

In the journal a line counts once its newline is on the disk. A line that a kill cut off is removed
before the next line is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from perflab.errors import HostBusy, ParameterError, RecordingError, ResumeRefused
from perflab.host import facts
from perflab.host.facts import LENGTH, sources
from perflab.host.files import explained, remove_broken_off, replace_file, whole_folder, write_file
from perflab.paths import notebook_file, runs_dir, sweeps_dir
from perflab.recordings.sameness import differences
from perflab.recordings.store import LATELY_S
from perflab.reports.conversion import html_page
from perflab.sweeps.cells import Cell, Sweep, systems_of

# The class of the error where the user or a signal ended a cell in order.
INTERRUPTED = "RunInterrupted"
# A cell whose run ended and has no valid trial: it failed, though its notebook did not.
NO_TRIAL_COUNTS = "NoTrialCounts"
# After these the run is not gone on with: the next attempt measures anew.
NOT_TO_BE_RESUMED = ("ResumeRefused", "RunNotFound", "RecordingError", NO_TRIAL_COUNTS)
COPY = "sweep.yaml"
# What is told where the folder of a sweep cannot be written.
KEPT = "what the journal holds already is safe; go on with --resume"
ELSEWHERE = "move the sweep to another disk and point PERFLAB_SWEEPS at the folder that it is in"
CHANCE = (
    "Each verdict is of one run by itself, and p is adjusted within that run alone: among many "
    "cells some look large by chance."
)


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    at: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))


class SessionBegun(_Entry):
    """A session of the sweep began: the absolute path of its file, its cells, code and machine."""

    event: Literal["session"] = "session"
    file: str
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

    ``verdicts`` are claim, verdict and measured size, and ``doubt`` says why they are doubtful
    (:func:`perflab.analysis.noise.doubt`). Paths are absolute. ``stored`` is the path
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
    valid_trials: int = 0
    trials: int = 0
    doubt: str = ""
    verdicts: tuple[tuple[str, str, str], ...] = ()
    host: str = ""
    stored: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether the run and its notebook are finished."""
        return self.done or self.kind == NO_TRIAL_COUNTS

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
            return "broken off"
        if self.ended.kind == INTERRUPTED:
            return "interrupted"
        return "done" if self.ended.done else "failed"


@dataclass
class CellState:
    """The attempts at one cell."""

    attempts: list[Attempt] = field(default_factory=list)

    @property
    def state(self) -> str:
        """One of waiting, broken off, interrupted, done and failed."""
        return self.attempts[-1].outcome if self.attempts else "waiting"

    @property
    def ended(self) -> AttemptEnded | None:
        """How the last attempt ended."""
        return self.attempts[-1].ended if self.attempts else None

    @property
    def run_id(self) -> str:
        """The last run that the attempts made."""
        made = (attempt.run_id for attempt in reversed(self.attempts) if attempt.run_id)
        return next(made, "")

    @property
    def to_go_on_with(self) -> str:
        """The run that the next attempt resumes or shows, if there is one."""
        return "" if self.ended and self.ended.kind in NOT_TO_BE_RESUMED else self.run_id


class Journal:
    """The journal in a sweep's folder; RecordingError names a line that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal.jsonl"
        self.sessions: list[SessionBegun] = []
        self._cells: dict[str, CellState] = {}
        content = self.path.read_bytes() if self.path.exists() else b""
        *whole, cut_off = content.split(b"\n")
        self._whole_bytes = len(content) - len(cut_off)
        for number, text in enumerate(whole, 1):
            try:
                self._take(_LINE.validate_json(text))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]["msg"]
                raise RecordingError(
                    f"{self.path}:{number}: is no line of a journal ({first}); mend it, or begin "
                    "the sweep anew without --resume"
                ) from None

    def cell(self, name: str) -> CellState:
        """Return the state of a cell."""
        return self._cells.setdefault(name, CellState())

    def add(self, line: Line) -> None:
        """Write a line, which is on the disk when this returns; the caller must hold the lock."""
        with explained(self.path, KEPT, ELSEWHERE):
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
                self.cell(line.cell).attempts[-1].run_id = line.run_id
            case AttemptEnded():
                attempt = self.cell(line.cell).attempts[-1]
                attempt.ended, attempt.run_id = line, line.run_id or attempt.run_id


def new_folder(sweep: Sweep) -> Path:
    """Make the folder of a new sweep: ``<UTC time>-<name of the file>-<id>``."""
    began = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    folder = sweeps_dir() / f"{began}-{sweep.file.stem}-{secrets.token_hex(3)}"
    sweeps_dir().mkdir(parents=True, exist_ok=True)
    remove_broken_off(sweeps_dir(), age_s=LATELY_S)
    with whole_folder(folder) as unfinished:
        write_file(unfinished / COPY, lambda file: file.write(sweep.content))
    return folder


def newest_folder(sweep: Sweep) -> Path:
    """Return the newest folder of a sweep, by its file's place; by its content if it was moved.

    One that was killed before its first session counts by its name.
    """
    folders = [path.parent for path in sweeps_dir().glob(f"*/{COPY}")]
    # The sweep's name stands between time and id.
    alike = [path for path in folders if "-".join(path.name.split("-")[1:-1]) == sweep.file.stem]
    others = []
    for folder in sorted(alike, reverse=True):
        is_same = (folder / COPY).read_bytes() == sweep.content
        try:
            sessions = Journal(folder).sessions
        except RecordingError:
            if is_same:
                raise
            continue
        file = sessions[-1].file if sessions else ""
        if file in ("", _place_of(sweep)) or (is_same and not Path(file).exists()):
            return folder
        others.append(f"; the sweep in {folder.name} is of {file}")
    no_sweep = f"there is no sweep of {_place_of(sweep)} in {sweeps_dir()}; leave --resume out"
    raise ParameterError("--resume", [no_sweep + "".join(others[:1])])


def _place_of(sweep: Sweep) -> str:
    return str(sweep.file.resolve())


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder while the block runs; HostBusy where another process has it."""
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostBusy(
                f"sweep {folder} is being carried out already; wait for it to end"
            ) from None
        # Nobody else writes here now: a killed process left the unfinished files.
        for place in (folder, *folder.glob("cells/*")):
            remove_broken_off(place)
        yield


def session_now(sweep: Sweep, machine: Mapping[str, Any] | None = None) -> SessionBegun:
    """Return the session that begins now, on this host or another ``machine``."""
    return SessionBegun(
        file=_place_of(sweep),
        cells=tuple(cell.id for cell in sweep.cells),
        sources={**sources(systems_of(sweep.cells)), **digests_of_notebooks(sweep.cells)},
        machine=dict(machine or facts.machine()),
    )


def digests_of_notebooks(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the beginning of the SHA-256 of each notebook that cells execute."""
    return {
        f"notebook {name}": hashlib.sha256(notebook_file(name).read_bytes()).hexdigest()[:LENGTH]
        for name in sorted({cell.notebook for cell in cells})
    }


def refuse_changes(journal: Journal, now: SessionBegun) -> None:
    """Refuse code or a machine that changed since the last session; the file may change."""
    if not journal.sessions:
        return
    before = journal.sessions[-1]
    # A notebook of only one of the two sessions has nothing to compare with.
    both = [name for name in now.sources if name in before.sources]
    old, new = ({name: item.sources[name] for name in both} for item in (before, now))
    problems = [
        *(f"the code: {difference}" for difference in differences(old, new)),
        *(f"the machine: {item}" for item in differences(before.machine, now.machine)),
    ]
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ResumeRefused(
            f"{journal.path.parent}: its cells would not compare. Changed since the last session:\n"
            f"{listed}\nUndo that, or begin anew without --resume"
        )


def write_index(folder: Path, sweep: Sweep, journal: Journal) -> None:
    """Replace the page; its links are relative, so that the folder can be moved."""
    states = Counter(journal.cell(cell.id).state for cell in sweep.cells)
    listed = ", ".join(f"{count} {state}" for state, count in states.items())
    head = f"<h1>{escape(sweep.title)}</h1>\n<p>{len(sweep.cells)} cells: {listed}. {CHANCE}</p>\n"
    table = pd.DataFrame([_row(cell, journal.cell(cell.id), folder) for cell in sweep.cells])
    with pd.option_context("display.max_colwidth", None):
        body = table.to_html(index=False, escape=False)
    replace_file(folder / "index.html", html_page(sweep.title, head + body).encode())


def _row(cell: Cell, state: CellState, folder: Path) -> dict[str, str]:
    """Return what the page says of a cell, as HTML."""
    # A run of another host can be read only after it was copied to the folder of results.
    is_here = state.run_id and not state.attempts[-1].begun.host
    places = {"run": str(runs_dir() / state.run_id) if is_here else ""}
    trials = verdicts = ""
    if ended := state.ended:
        places["run"] = ended.stored or places["run"]
        places |= {"notebook": ended.notebook, "log": ended.log}
        trials = f"{ended.valid_trials} of {ended.trials} trials valid" if ended.trials else ""
        trials += f"; doubtful: {escape(ended.doubt)}" if ended.doubt else ""
        verdicts = escape(f"{ended.kind}: {ended.error}")
        if not ended.error:
            verdicts = _bullets(f"{claim}: {word} {size}" for claim, word, size in ended.verdicts)
    links = [f'<a href="{_address(at, folder)}">{word}</a>' for word, at in places.items() if at]
    return {
        "cell": f"<b>{escape(cell.label)}</b><br><code>{cell.id}</code><br>{', '.join(links)}",
        "state": f"{state.state}{_bullets(map(_attempt_text, state.attempts))}{trials}",
        "verdicts": verdicts,
    }


def _attempt_text(attempt: Attempt) -> str:
    kind = f" ({attempt.ended.kind})" if attempt.ended and attempt.ended.kind else ""
    words = [f"attempt {attempt.begun.attempt}: {attempt.outcome}{kind}"]
    if attempt.begun.host:
        words.append(f"on {attempt.begun.host}")
    if attempt.run_id:
        words.append(f"run {attempt.run_id}")
    return ", ".join(words)


def _bullets(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _address(place: str, folder: Path) -> str:
    return escape(quote(os.path.relpath(place, folder)))
