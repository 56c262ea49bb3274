"""Progress of a run, shown where the caller runs: below a cell, on a terminal, in a file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from perflab.narration import Narrator, minutes
from perflab.trials.events import Event

__all__ = ["PROGRESS_FILE", "Narrator", "Terminal", "minutes", "progress"]
PROGRESS_FILE = "PERFLAB_PROGRESS"


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


def _in_kernel() -> bool:
    return "ipykernel" in sys.modules and "IPython" in sys.modules


@contextlib.contextmanager
def progress() -> Iterator[Callable[[Event], None]]:
    """Yield what shows events, where the caller runs; a file may listen too.

    The environment variable ``PERFLAB_PROGRESS`` names a file that every event is appended to as
    a line of JSON, so that whoever runs a notebook can show its progress.
    """
    with contextlib.ExitStack() as ending:
        shows: list[Callable[[Event], None]] = []
        if _in_kernel():
            from perflab.live_cell import LiveCell

            shows.append(ending.enter_context(LiveCell()))
        else:
            shows.append(Terminal(sys.stderr))
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
