"""Show the progress of a run: on a terminal, below a notebook's cell, in a log.

:class:`Narrator` turns the conductor's events into lines. A terminal has one line that changes, and
lines that stay. A cell has one output that changes, of which only the lines that stay are saved
with the notebook. A log is a file of events that another process follows, such as the one that
executes a notebook.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

from pydantic import Field, TypeAdapter, ValidationError

from perflab.host.temporary_folders import temporary
from perflab.parameters import FrozenModel
from perflab.recordings import Reason
from perflab.recordings.schema import TrialState

LONGEST_SHOWN = 200
PROGRESS_FILE = "PERFLAB_PROGRESS"
# Kernel and browser draw with the CPU of the measured machine, so they draw seldom.
REDRAW_S = 1.0
MOST_LINES = 12
POLL_EVERY_S = 0.2
NOT_THE_RESULT = (
    "Live numbers of the trial under way, not a result: nothing has judged them yet. The stop "
    "button ends this trial in order and keeps those that are done."
)


class RunBegun(FrozenModel):
    """The run has its folder: ``path``."""

    event: Literal["run"] = "run"
    run_id: str
    path: str
    backend: str


class Note(FrozenModel):
    """A step of slow work, or a problem that was mended."""

    event: Literal["note"] = "note"
    text: str


class TrialBegun(FrozenModel):
    """The ``number``-th trial ``of`` those of this session begins; blocks are counted from 1.

    ``left_s`` is an estimate of the remaining time; None while it is unknown. With ``at_most`` the
    run may end earlier: ``of``, ``blocks`` and ``left_s`` are upper bounds.
    """

    event: Literal["trial"] = "trial"
    number: int
    of: int
    block: int
    blocks: int
    treatment: str
    label: str
    left_s: float | None = None
    at_most: bool = False


class LoadProgress(FrozenModel):
    """Finished requests ``of`` the planned ones (-1: time ends the load).

    The trial began ``seconds`` ago; the rate is that of its load, None where it is not known yet or
    the load has breaks. These live numbers are never a result: nothing has judged them yet.
    """

    event: Literal["load"] = "load"
    finished: int
    of: int
    seconds: float
    rate_rps: float | None = None
    failed: int = 0
    warming_up: bool = False


class TrialDone(FrozenModel):
    """A trial is committed; a rate that it does not have is None."""

    event: Literal["trial_done"] = "trial_done"
    trial_id: str
    state: TrialState
    reasons: tuple[Reason, ...] = ()
    throughput_rps: float | None = None
    messages_per_s: float | None = None
    left_s: float | None = None


class Failed(FrozenModel):
    """The run ends with an error; ``kind`` is its class in :mod:`perflab.errors`."""

    event: Literal["error"] = "error"
    kind: str
    text: str


Event = RunBegun | Note | TrialBegun | LoadProgress | TrialDone | Failed
_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def parse(line: bytes) -> Event:
    """Return the event of a line of JSON; for any other line, a note that it cannot be read."""
    try:
        return _EVENT.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["msg"]
        return Note(
            text=f"a line of the run cannot be read ({first:.{LONGEST_SHOWN}}): "
            f"{line.decode(errors='replace').strip():.{LONGEST_SHOWN}}. If perflab was changed "
            "after this program or kernel was started, start it again"
        )


def minutes(seconds: float) -> str:
    """Return ``m:ss``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@contextlib.contextmanager
def showing() -> Iterator[Callable[[Event], None]]:
    """Yield a function that shows events on the caller's terminal or below its cell.

    It also appends every event as a line of JSON to the file that ``PERFLAB_PROGRESS`` names (see
    :func:`followed`).
    """
    with contextlib.ExitStack() as ending:
        shown = ending.enter_context(LiveCell()) if _in_kernel() else Terminal(sys.stderr)
        path = os.environ.get(PROGRESS_FILE)
        # Each line is written when it ends.
        file = ending.enter_context(Path(path).open("a", buffering=1)) if path else None

        def show(event: Event) -> None:
            shown(event)
            if file is not None:
                file.write(event.model_dump_json() + "\n")

        yield show


def _in_kernel() -> bool:
    """Return whether this process is the kernel of a notebook; IPython alone shows no cells."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


# ---- lines ---------------------------------------------------------------------------------------


class Narrator:
    """Turns events into a line that changes and lines that stay."""

    def __init__(self) -> None:
        self._trial: TrialBegun | None = None

    def line(self, event: Event) -> tuple[str, bool]:
        """Return the text for an event (empty: nothing to show), and whether the line stays."""
        match event:
            case RunBegun():
                return f"run {event.run_id} on the {event.backend} backend", True
            case Note():
                return f"  {event.text}", True
            case TrialBegun():
                self._trial = event
                return self._standing("", 0.0), False
            case LoadProgress():
                return self._standing(f"live: {self._live(event)}", event.seconds), False
            case TrialDone():
                return self._done(event), True
        return "", False

    def _left(self, seconds: float | None) -> str:
        """Return the words for the time left, "at most" where the run may end earlier."""
        if not seconds or seconds < 0:
            return ""
        bound = "at most" if self._trial is not None and self._trial.at_most else "about"
        return f"{bound} {minutes(seconds)} left"

    def _standing(self, load: str, seconds: float) -> str:
        trial = self._trial
        if trial is None:
            return ""
        left = self._left((trial.left_s or 0.0) - seconds)
        block = f"block {trial.block}/{trial.blocks}"
        shown = f"  trial {trial.number}/{trial.of}, {block}: {trial.label}"
        return f"{shown}{left and ', '}{left}  {load}"

    def _live(self, load: LoadProgress) -> str:
        of = f"/{load.of}" if load.of >= 0 else ""
        rate = f" at {load.rate_rps:.0f}/s" if load.rate_rps is not None else ""
        parts = [f"{load.finished}{of}{rate}"]
        parts += ["warming up"] if load.warming_up else []
        parts += [f"{load.failed} failed"] if load.failed else []
        return ", ".join(parts)

    def _done(self, event: TrialDone) -> str:
        trial, rate = self._trial, event.throughput_rps
        shown = f"{rate:.0f} requests/s" if rate is not None else "measured"
        if event.messages_per_s is not None:
            shown = f"{event.messages_per_s:.0f} messages/s"
        left = self._left(event.left_s)
        which = f"{trial.number}/{trial.of} {trial.label}" if trial else event.trial_id
        text = f"  {which}: {shown}"
        if event.state != "valid":
            reason = event.reasons[0].text.splitlines()[0] if event.reasons else ""
            text += f"  {event.state.upper()}: {reason}"
        return text + (f"  ({left})" if left else "")


# ---- a terminal ----------------------------------------------------------------------------------


class Terminal:
    """Writes to a terminal (one line changes) or a plain stream (only lines that stay)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._narrator = Narrator()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        text, stays = self._narrator.line(event)
        if not text or not (stays or self._live):
            return
        if self._live:
            width = os.get_terminal_size(self._stream.fileno()).columns
            self._stream.write("\r\x1b[K" + (text if stays else text[: width - 1]))
            self._stream.write("\n" if stays else "")
        else:
            self._stream.write(text + "\n")
        self._stream.flush()


# ---- below a notebook's cell ---------------------------------------------------------------------


class LiveCell:
    """Shows events below the running cell, while the block lasts.

    The numbers of a running trial are marked as live and drawn again every second at most.
    When the run ends, in order or not, only the lines that stay remain.
    """

    def __init__(self) -> None:
        from IPython.display import DisplayHandle

        self._drawn_at = 0.0
        self._narrator = Narrator()
        self._lasting: list[str] = []
        new: Any = DisplayHandle
        self._handle = new()

    def __enter__(self) -> LiveCell:
        self._handle.display({"text/plain": ""}, raw=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave only the lines that stay."""
        self._handle.update({"text/plain": self._lines()}, raw=True)

    def __call__(self, event: Event) -> None:
        """Show one event."""
        text, stays = self._narrator.line(event)
        if stays:
            self._lasting.append(text)
        now = time.monotonic()
        if isinstance(event, LoadProgress) and now - self._drawn_at < REDRAW_S:
            return
        self._drawn_at = now
        live = [] if stays or not text else [text, NOT_THE_RESULT]
        self._handle.update({"text/plain": "\n".join([self._lines(), *live])}, raw=True)

    def _lines(self) -> str:
        """Return the lines that stay: the first, which names the run, and the newest."""
        if len(self._lasting) <= MOST_LINES:
            return "\n".join(self._lasting)
        return "\n".join([self._lasting[0], "  ...", *self._lasting[2 - MOST_LINES :]])


# ---- a log that another process follows ----------------------------------------------------------


@contextlib.contextmanager
def followed(on_event: Callable[[Event], None]) -> Iterator[None]:
    """Call ``on_event`` for every event of the runs in kernels that the block starts.

    A kernel inherits ``PERFLAB_PROGRESS`` and appends its events to that file; a thread reads it.
    """
    with temporary("progress") as folder:
        path = folder / "events"
        path.touch()
        ended = threading.Event()
        before = os.environ.get(PROGRESS_FILE)
        os.environ[PROGRESS_FILE] = str(path)
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(_read, path, ended, on_event)
            try:
                yield
            finally:
                ended.set()
                os.environ.pop(PROGRESS_FILE)
                if before is not None:
                    os.environ[PROGRESS_FILE] = before
            reading.result()


def _read(path: Path, ended: threading.Event, on_event: Callable[[Event], None]) -> None:
    with path.open("rb") as file:
        last, pending = False, b""
        while True:
            # The end of a line may not have been written yet.
            *lines, pending = (pending + file.read()).split(b"\n")
            for line in lines:
                on_event(parse(line))
            if last:
                return
            last = ended.wait(POLL_EVERY_S)
