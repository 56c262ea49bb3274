"""Where blocking work waits for a thread, and how many wait there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

from anyio import to_thread

from registry.refusal import ClientGone
from registry.settings import Settings
from registry.timing import Phases, clock

Result = TypeVar("Result")
Work = Callable[[], Result]


class Ticket(Generic[Result]):
    """Work in a line: it has a thread once, or is called off once."""

    def __init__(self, line: Line, work: Work[Result], phases: Phases) -> None:
        self._line, self._work, self._phases = line, work, phases
        self._asked_ns = clock()
        self._taken = threading.Lock()

    def __call__(self) -> Result:
        """Do the work, in the thread that it waited for."""
        if not self._taken.acquire(blocking=False):
            raise ClientGone
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


class Line:
    """Work that was handed over and has no thread yet (``waiting``), or has one (``working``)."""

    def __init__(self) -> None:
        self.waiting = 0
        self.working = 0
        self.most_waiting = 0
        self._lock = threading.Lock()

    def ticket(self, work: Work[Result], phases: Phases) -> Ticket[Result]:
        """Return work that counts itself, and notes its wait as phase ``thread``."""
        with self._lock:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
        return Ticket(self, work, phases)

    def step(self, waiting: int, working: int) -> None:
        """Count work that goes on."""
        with self._lock:
            self.waiting += waiting
            self.working += working

    def clear(self) -> None:
        """Forget the longest line."""
        with self._lock:
            self.most_waiting = self.waiting

    async def run(self, work: Work[Result], phases: Phases) -> Result:  # noqa: ARG002
        """Do the work as this line does it: here, and so in the event loop."""
        return work()

    @property
    def threads(self) -> int:
        """Return how many threads it may have."""
        return 0

    def close(self) -> None:
        """Take no more work."""


class ExecutorLine(Line):
    """Work in an executor, the event loop's default one or one's own."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        super().__init__()
        self.executor = executor

    async def run(self, work: Work[Result], phases: Phases) -> Result:
        """Do the work in a thread; called off, it does not begin if it has not."""
        ticket = self.ticket(work, phases)
        try:
            return await self._in_thread(ticket)
        except asyncio.CancelledError:
            ticket.call_off()
            raise

    async def _in_thread(self, ticket: Ticket[Result]) -> Result:
        run = partial(copy_context().run, ticket)
        return await asyncio.get_running_loop().run_in_executor(self.executor, run)

    @property
    def threads(self) -> int:
        """Return how many threads it may have."""
        return self.executor._max_workers

    def close(self) -> None:
        """Take no more work; do not wait for what has not begun."""
        self.executor.shutdown(wait=False, cancel_futures=True)


class DefaultLine(ExecutorLine):
    """The same through ``asyncio.to_thread``, as the published service called it."""

    async def _in_thread(self, ticket: Ticket[Result]) -> Result:
        return await asyncio.to_thread(ticket)


class FrameworkLine(Line):
    """FastAPI's own threads, in which it runs a plain ``def`` by itself."""

    @property
    def threads(self) -> int:
        """Return how many threads it may have."""
        return int(to_thread.current_default_thread_limiter().total_tokens)


def open_line(settings: Settings) -> Line:
    """Return the line of the settings' handler; to be called in the running event loop."""
    if settings.handler in ("blocking", "async", "redirect"):
        return Line()
    if settings.handler == "threads":
        return FrameworkLine()
    # None is Python's own number: min(32, cores + 4).
    threads = settings.executor_threads or None
    executor = ThreadPoolExecutor(threads, thread_name_prefix=settings.handler)
    if settings.handler == "to_thread":
        asyncio.get_running_loop().set_default_executor(executor)
        return DefaultLine(executor)
    return ExecutorLine(executor)
