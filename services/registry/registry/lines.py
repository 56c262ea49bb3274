"""Where blocking work waits for a thread, and how much of it waits there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from specimen.timing import Phases, clock

from registry.counts import Counts
from registry.settings import Settings

Result = TypeVar("Result")
Work = Callable[[], Result]


class Ticket(Generic[Result]):
    """Work that waits: it has a thread once, or is called off; its wait is phase ``thread``."""

    def __init__(self, work: Work[Result], counts: Counts, phases: Phases) -> None:
        self._work, self._counts, self._phases = work, counts, phases
        self._asked_ns = clock()
        self._taken = threading.Lock()
        counts.add(waiting_for_thread=1)

    def __call__(self) -> Result:
        """Do the work, in the thread that it waited for."""
        if not self._taken.acquire(blocking=False):
            raise asyncio.CancelledError
        self._phases.add("thread", self._asked_ns)
        self._counts.add(waiting_for_thread=-1, working_threads=1)
        try:
            return self._work()
        finally:
            self._counts.add(working_threads=-1)

    def call_off(self) -> None:
        """Leave the line, unless the work has begun."""
        if self._taken.acquire(blocking=False):
            self._counts.add(waiting_for_thread=-1)


class Line:
    """No line: work is done where it is handed over, and so in the event loop."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts

    async def run(self, work: Work[Result], phases: Phases) -> Result:  # noqa: ARG002
        """Do the work."""
        return work()


class ExecutorLine(Line):
    """Work in threads of an executor of its own.

    With ``is_default`` it is the event loop's, and called through ``asyncio.to_thread`` as by the
    published service.
    """

    def __init__(self, counts: Counts, threads: int | None, is_default: bool) -> None:
        super().__init__(counts)
        self._executor, self._is_default = ThreadPoolExecutor(threads), is_default
        if is_default:
            asyncio.get_running_loop().set_default_executor(self._executor)

    async def run(self, work: Work[Result], phases: Phases) -> Result:
        """Do the work in a thread; called off, it does not begin if it has not."""
        ticket = Ticket(work, self.counts, phases)
        try:
            if self._is_default:
                return await asyncio.to_thread(ticket)
            return await asyncio.get_running_loop().run_in_executor(self._executor, ticket)
        except asyncio.CancelledError:
            ticket.call_off()
            raise


def open_line(settings: Settings, counts: Counts) -> Line:
    """Return the line of the settings' handler; to be called in the running event loop."""
    if settings.handler not in ("to_thread", "executor", "ranged"):
        return Line(counts)
    # None is Python's own number: min(32, cores + 4).
    threads = settings.executor_threads or None
    return ExecutorLine(counts, threads, is_default=settings.handler == "to_thread")
