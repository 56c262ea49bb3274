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
    """Work in threads of an executor of its own."""

    def __init__(self, counts: Counts, threads: int | None) -> None:
        super().__init__(counts)
        self.executor = ThreadPoolExecutor(threads)

    async def run(self, work: Work[Result], phases: Phases) -> Result:
        """Do the work in a thread; called off, it does not begin if it has not."""
        ticket = Ticket(work, self.counts, phases)
        try:
            return await self._in_thread(ticket)
        except asyncio.CancelledError:
            ticket.call_off()
            raise

    async def _in_thread(self, ticket: Ticket[Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.executor, ticket)


class DefaultLine(ExecutorLine):
    """The same through ``asyncio.to_thread``, as the published service called it."""

    def __init__(self, counts: Counts, threads: int | None) -> None:
        super().__init__(counts, threads)
        asyncio.get_running_loop().set_default_executor(self.executor)

    async def _in_thread(self, ticket: Ticket[Result]) -> Result:
        return await asyncio.to_thread(ticket)


def open_line(settings: Settings, counts: Counts) -> Line:
    """Return the line of the settings' handler; to be called in the running event loop."""
    # None is Python's own number: min(32, cores + 4).
    threads = settings.executor_threads or None
    if settings.handler == "to_thread":
        return DefaultLine(counts, threads)
    if settings.handler in ("executor", "ranged"):
        return ExecutorLine(counts, threads)
    return Line(counts)
