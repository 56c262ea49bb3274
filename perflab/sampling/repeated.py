"""A job that is done again and again in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Repeated:
    """Does a job every ``interval_s`` until ``stop``; with ``at_end``, once more then."""

    def __init__(self, job: Callable[[], None], interval_s: float, *, at_end: bool = False) -> None:
        self._job = job
        self._at_end = at_end
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Let the job that is under way end."""
        self._ended.set()
        self._thread.join(timeout=10)
        if self._at_end:
            self._job()

    def _repeat(self) -> None:
        due = time.monotonic()
        while not self._ended.is_set():
            self._job()
            # Keep to the grid, and leave out what a slow job has missed.
            due = max(due + self._interval_s, time.monotonic())
            self._ended.wait(due - time.monotonic())
