"""Progress of a run: what runs, how long it will still take, live throughput."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from perflab.trials.client import Pace
from perflab.trials.events import Event, LoadProgress, Note, RunBegun, TrialBegun, TrialDone

PROGRESS_FILE = "PERFLAB_PROGRESS"


def minutes(seconds: float) -> str:
    """Return ``m:ss``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Narrator:
    """Turns events into a standing line and lines that stay."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._trial: TrialBegun | None = None

    def line(self, event: Event) -> tuple[str, bool]:
        """Return the text for an event, and whether it stays (empty: nothing to show)."""
        match event:
            case RunBegun():
                return f"run {event.run_id} on the {event.backend} backend", True
            case Note():
                return f"  {event.text}", True
            case TrialBegun():
                self._trial, self._pace = event, Pace()
                return self._standing(""), False
            case LoadProgress():
                rate = self._pace.update(event.finished)
                of = f"/{event.of}" if event.of >= 0 else ""
                return self._standing(f"{event.finished}{of} at {rate:.0f}/s"), False
            case TrialDone():
                return self._done(event), True
        return "", False

    def _standing(self, load: str) -> str:
        trial = self._trial
        if trial is None:
            return ""
        left = f", {self._left(trial.left_s)}" if trial.left_s else ""
        text = f"  trial {trial.number}/{trial.of}, block {trial.block}: {trial.label}"
        return f"{text}{left}  {load}"

    def _left(self, seconds: float) -> str:
        """Return how long the run will take, or at most: it may end once all is decided."""
        bound = "at most" if self._trial is not None and self._trial.at_most else "about"
        return f"{bound} {minutes(seconds)} left"

    def _done(self, event: TrialDone) -> str:
        trial, rate = self._trial, event.throughput_rps
        shown = f"{rate:.0f} requests/s" if rate is not None else "no result"
        if event.messages_per_s is not None:
            shown = f"{event.messages_per_s:.0f} messages/s"
        left = f"  ({self._left(event.left_s)})" if event.left_s else ""
        which = f"{trial.number}/{trial.of} {trial.label}" if trial else event.trial_id
        text = f"  {which}: {shown}"
        if event.state != "valid":
            reason = event.reasons[0].text.splitlines()[0] if event.reasons else ""
            text += f"  {event.state.upper()}: {reason}"
        return text + left


class Terminal:
    """Writes to a terminal (one standing line) or a plain stream (lines that stay only)."""

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


class Cell:
    """Shows one changing text below a notebook cell."""

    def __init__(self) -> None:
        from IPython.display import DisplayHandle

        self._narrator = Narrator()
        self._kept: list[str] = []
        handle: Any = DisplayHandle()
        self._handle = handle
        self._handle.display({"text/plain": ""}, raw=True)

    def __call__(self, event: Event) -> None:
        """Show one event."""
        text, stays = self._narrator.line(event)
        if not text:
            return
        if stays:
            self._kept = [*self._kept, text][-12:]
        shown = "\n".join(self._kept if stays else [*self._kept, text])
        self._handle.update({"text/plain": shown}, raw=True)


def _in_kernel() -> bool:
    return "ipykernel" in sys.modules and "IPython" in sys.modules


@contextlib.contextmanager
def progress() -> Iterator[Callable[[Event], None]]:
    """Yield what shows events, where the caller runs; a file may listen too.

    The environment variable ``PERFLAB_PROGRESS`` names a file that every event is appended to as
    a line of JSON, so that whoever runs a notebook can show its progress.
    """
    shows: list[Callable[[Event], None]] = [Cell() if _in_kernel() else Terminal(sys.stderr)]
    with contextlib.ExitStack() as ending:
        path = os.environ.get(PROGRESS_FILE)
        if path:
            file = ending.enter_context(Path(path).open("a"))

            def write(event: Event) -> None:
                file.write(event.model_dump_json() + "\n")
                file.flush()

            shows.append(write)

        def show(event: Event) -> None:
            for each in shows:
                each(event)

        yield show
