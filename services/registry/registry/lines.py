"""Where blocking work waits for a thread, and how much of it waits there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from registry.settings import Settings
from registry.timing import Phases, clock

Result = TypeVar("Result")
Work = Callable[[], Result]


class Line:
    """Work that was handed over and has no thread yet (``waiting``), or has one (``working``)."""

    def __init__(self) -> None:
        self.waiting = 0
        self.working = 0
        self.most_waiting = 0
        self._lock = threading.Lock()

    def ticket(self, work: Work[Result], phases: Phases) -> Ticket[Result]:
        """Return work that counts itself, and notes its wait as phase ``thread``."""
        self.step(1, 0)
        return Ticket(self, work, phases)

    def step(self, waiting: int, working: int) -> None:
        """Count work that goes on."""
        with self._lock:
            self.waiting += waiting
            self.working += working
            self.most_waiting = max(self.most_waiting, self.waiting)

    def clear(self) -> None:
        """Forget the longest line."""
        with self._lock:
            self.most_waiting = self.waiting

    async def run(self, work: Work[Result], phases: Phases) -> Result:  # noqa: ARG002
        """Do the work here, and so in the event loop."""
        return work()


class Ticket(Generic[Result]):
    """Work in a line: it has a thread once, or is called off once."""

    def __init__(self, line: Line, work: Work[Result], phases: Phases) -> None:
        self._line, self._work, self._phases = line, work, phases
        self._asked_ns = clock()
        self._taken = threading.Lock()

    def __call__(self) -> Result:
        """Do the work, in the thread that it waited for."""
        if not self._taken.acquire(blocking=False):
            raise asyncio.CancelledError
        self._phases.add("thread", self._asked_ns)
        self._line.step(-1, 1)
        try:
            return self._work()
        finally:
            self._line.step(0, -1)

    def call_off(self) -> None:
        """Leave the line, unless the work has begun."""
        if self._taken.acquire(blocking=False):
            self._line.step(-1, 0)


class ExecutorLine(Line):
    """Work in threads of an executor of its own."""

    def __init__(self, threads: int | None, name: str) -> None:
        super().__init__()
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Work[Result], phases: Phases) -> Result:
        """Do the work in a thread; called off, it does not begin if it has not."""
        ticket = self.ticket(work, phases)
        try:
            return await self._in_thread(ticket)
        except asyncio.CancelledError:
            ticket.call_off()
            raise

    async def _in_thread(self, ticket: Ticket[Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.executor, ticket)


class DefaultLine(ExecutorLine):
    """The same through ``asyncio.to_thread``, as the published service called it."""

    def __init__(self, threads: int | None, name: str) -> None:
        super().__init__(threads, name)
        asyncio.get_running_loop().set_default_executor(self.executor)

    async def _in_thread(self, ticket: Ticket[Result]) -> Result:
        return await asyncio.to_thread(ticket)


def open_line(settings: Settings) -> Line:
    """Return the line of the settings' handler; to be called in the running event loop."""
    # None is Python's own number: min(32, cores + 4).
    threads = settings.executor_threads or None
    if settings.handler == "to_thread":
        return DefaultLine(threads, settings.handler)
    if settings.handler in ("executor", "ranged"):
        return ExecutorLine(threads, settings.handler)
    return Line()
