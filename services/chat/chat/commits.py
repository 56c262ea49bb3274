"""When messages are committed, and so when they may be acknowledged.

====================  =========================  ==========================================
setting               acknowledged               where the commit runs
====================  =========================  ==========================================
``each``              after its own commit       in the event loop, which waits for the disk
``batched``           after its batch's commit   in the event loop, once per batch
``write_behind``      at once                    in a thread, once per batch
====================  =========================  ==========================================

Joins, leaves and logins are committed one by one, as the published system does; with
``write_behind`` they go into the batch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from chat.counts import Counts
from chat.refusal import NotStored
from chat.settings import Settings
from chat.store import Statement, Store

log = logging.getLogger("uvicorn.error")
# Told None once the message is as safe as the setting promises, or why it is not.
Answer = Callable[[NotStored | None], None]


class Commits(Protocol):
    """A way to bring changes to the disk."""

    def message(self, statement: Statement, answer: Answer) -> None:
        """Store a message and answer; may raise NotStored at once, and then does not answer."""

    def change(self, statement: Statement) -> None:
        """Store a login, a join or a leave; raises NotStored."""

    def flush(self) -> None:
        """Commit what waits, before this returns."""

    def close(self) -> None:
        """Flush, and take nothing more."""


class Each:
    """One commit per message."""

    def __init__(self, store: Store, counts: Counts) -> None:
        self._store = store
        self._counts = counts

    def message(self, statement: Statement, answer: Answer) -> None:
        """Commit, then answer."""
        try:
            self._store.commit([statement])
        except NotStored:
            self._counts.not_stored += 1
            raise
        self._counts.stored += 1
        answer(None)

    def change(self, statement: Statement) -> None:
        """Commit."""
        self._store.commit([statement])

    def flush(self) -> None:
        """Nothing ever waits."""

    def close(self) -> None:
        """Nothing ever waits."""


class Batched:
    """One commit per batch: when it is full, or when its first message has waited long enough."""

    def __init__(
        self,
        store: Store,
        counts: Counts,
        size: int,
        interval_s: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._store = store
        self._counts = counts
        self._size = size
        self._interval_s = interval_s
        self._loop = loop
        self._waiting: list[tuple[Statement, Answer]] = []
        self._timer: asyncio.TimerHandle | None = None

    def message(self, statement: Statement, answer: Answer) -> None:
        """Put it into the batch; it is answered after the batch's commit."""
        self._waiting.append((statement, answer))
        if len(self._waiting) >= self._size:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._interval_s, self.flush)

    def change(self, statement: Statement) -> None:
        """Commit."""
        self._store.commit([statement])

    def flush(self) -> None:
        """Commit the batch and answer for each of its messages."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        if not batch:
            return
        problem = None
        try:
            self._store.commit([statement for statement, _ in batch])
            self._counts.stored += len(batch)
        except NotStored as error:
            problem = error
            self._counts.not_stored += len(batch)
        for _, answer in batch:
            answer(problem)

    def close(self) -> None:
        """Flush."""
        self.flush()


class WriteBehind:
    """Answers at once; a thread commits batches later. What it holds is lost with the process."""

    def __init__(self, store: Store, counts: Counts, size: int, interval_s: float) -> None:
        self._store = store
        self._counts = counts
        self._size = size
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Statement] = []
        self._messages = 0
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, "write-behind")

    def message(self, statement: Statement, answer: Answer) -> None:
        """Answer, and put it into the batch."""
        answer(None)
        self._messages += 1
        self.change(statement)

    def change(self, statement: Statement) -> None:
        """Put it into the batch."""
        self._waiting.append(statement)
        if len(self._waiting) >= self._size:
            self._hand_over()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._interval_s, self._hand_over)

    def _hand_over(self) -> Future[None]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        messages, self._messages = self._messages, 0
        return self._thread.submit(self._commit, batch, messages)

    def _commit(self, batch: list[Statement], messages: int) -> None:
        try:
            self._store.commit(batch)
            self._counts.stored += messages
        except NotStored as error:
            self._counts.not_stored += messages
            log.error("%d acknowledged messages are lost: %s", messages, error.reason)

    def flush(self) -> None:
        """Commit all, and wait for the thread."""
        self._hand_over().result()

    def close(self) -> None:
        """Flush, and end the thread."""
        self.flush()
        self._thread.shutdown()


def open_commits(settings: Settings, store: Store, behind: Store, counts: Counts) -> Commits:
    """Return what the setting ``commit`` names; ``behind`` is a thread's own way to the file."""
    size, interval_s = settings.batch_size, settings.batch_interval_ms / 1e3
    if settings.commit == "each":
        return Each(store, counts)
    if settings.commit == "batched":
        return Batched(store, counts, size, interval_s, asyncio.get_running_loop())
    return WriteBehind(behind, counts, size, interval_s)
