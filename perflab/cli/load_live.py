"""What ``perflab load`` does while a load runs: one line of progress, and an ear for Ctrl-C."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflab.load.stopping import Progress


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Yield a check that ends the load in order once SIGINT or SIGTERM has come."""
    from perflab.load.status import INTERRUPTION
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
