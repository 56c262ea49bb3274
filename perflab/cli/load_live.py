"""How ``perflab load`` runs and ends: a line of progress, an ear for Ctrl-C, an exit status."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perflab.load.stopping import Progress


INTERRUPTION = "interrupted"


class Status(IntEnum):
    """The exit statuses: 99 is k6's for a missed threshold, 2 typer's for words it cannot read."""

    GOOD = 0
    ERROR = 1
    INVALID = 3
    ALL_FAILED = 4
    MISSED = 99
    INTERRUPTED = 130


def status_of(shown: Mapping[str, Any]) -> Status:
    """Return the exit status for a summary (see ``report.summary``)."""
    held = [each["held"] for each in shown["objectives"]]
    if shown["stopped"] == INTERRUPTION:
        return Status.INTERRUPTED
    if shown["requests"] and shown["errors"] == shown["requests"]:
        return Status.ALL_FAILED
    # What cannot be judged has not been shown to hold.
    if not shown["valid"] or (None in held and False not in held):
        return Status.INVALID
    return Status.MISSED if False in held or "stop" in shown else Status.GOOD


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Yield a check that ends the load in order once SIGINT or SIGTERM has come."""
    from perflab.load.stopping import StopLoad

    came: list[int] = []
    kept = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }

    def look() -> None:
        if came:
            raise StopLoad(INTERRUPTION)

    try:
        yield look
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


class Live:
    """One standing line on a terminal, or a line every ten seconds elsewhere; on stderr."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._finished = 0

    def __call__(self, progress: Progress) -> None:
        from perflab.load.stopping import percentile_ms

        now = time.monotonic()
        if now - self._last < (0.2 if self._terminal else 10.0):
            return
        rate = (progress.finished - self._finished) / (now - self._last)
        self._last, self._finished = now, progress.finished
        middle = percentile_ms(progress.counts, 50)
        # NaN while nothing has succeeded.
        shown = f", p50 {middle:.2f} ms" if middle == middle else ""
        text = (
            f"{now - self._began:6.1f} s  {progress.finished} done, {rate:.0f}/s, "
            f"{progress.failed} failed, {progress.in_flight} under way{shown}"
        )
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Remove the standing line."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
