"""SQLite in the service's data folder, when a change is committed to it, and what is counted.

A commit is durable: write-ahead log, flushed to the disk at every commit (``synchronous = FULL``).
Messages are committed in batches. ``batched`` commits in the event loop and then acknowledges them;
``write_behind`` acknowledges at once and commits in a thread. Joins, leaves and logins are
committed one by one, as the published system does; with ``write_behind`` they go into the batch.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specimen import counts
from specimen.refusal import Refused

from chat.envelopes import Message

SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (user TEXT PRIMARY KEY, hash TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (digest TEXT PRIMARY KEY, user TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscriptions (
    user TEXT NOT NULL, channel TEXT NOT NULL, subscribed INTEGER NOT NULL,
    PRIMARY KEY (user, channel)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    sequence INTEGER PRIMARY KEY, channel TEXT NOT NULL, sender TEXT NOT NULL, text TEXT NOT NULL
);
"""
# How long a statement waits for a lock that a reader from outside may hold. It blocks the loop.
LOCK_WAIT_S = 0.5
# So that the numbers of all messages have as many digits, and their frames one size.
FIRST_SEQUENCE = 1_000_000
# A batch is committed when it is full, or when its first message has waited so long.
BATCH_SIZE = 100
BATCH_WAIT_S = 0.05

Statement = tuple[str, Sequence[object]]
# Told None once the message is as safe as the setting promises, or why it is not.
Answer = Callable[[Refused | None], None]


@dataclass
class Counts(counts.Counts):
    """Messages by what became of them; ``open`` are the users who are connected."""

    received: int = 0
    delivered: int = 0
    dropped: int = 0
    acknowledged: int = 0
    stored: int = 0
    not_stored: int = 0

    def shown(self) -> dict[str, Any]:
        """Return the counts, with the CPU time of the thread that calls: the event loop's."""
        return {**super().shown(), "loop_cpu_s": time.thread_time()}


class Store:
    """The database; it may be used by one thread at a time, whichever that is."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "chat.sqlite"
        self._connection = sqlite3.connect(
            path, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(SCHEMA)

    def commit(self, statements: Iterable[Statement]) -> None:
        """Commit statements in one transaction, whole or not at all; raises Refused."""
        run = self._connection.execute
        try:
            run("BEGIN IMMEDIATE")
            try:
                for text, values in statements:
                    run(text, values)
                run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    run("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise Refused(503, "not_stored", f"SQLite: {error}") from None

    def prepare_accounts(self, accounts: Iterable[tuple[str, str]]) -> None:
        """Have exactly these accounts: user and password hash."""
        insert = "INSERT INTO accounts (user, hash) VALUES (?, ?)"
        self.commit([("DELETE FROM accounts", ()), *((insert, account) for account in accounts)])

    def password_hash(self, user: str) -> str | None:
        """Return an account's password hash, or None where there is no such account."""
        known = "SELECT hash FROM accounts WHERE user = ?"
        row = self._connection.execute(known, (user,)).fetchone()
        return str(row[0]) if row else None

    def tokens(self) -> list[tuple[str, str]]:
        """Return digest and user of every token."""
        return list(self._connection.execute("SELECT digest, user FROM tokens"))

    def subscriptions(self) -> list[tuple[str, str, int]]:
        """Return every join and leave that is in force."""
        return list(self._connection.execute("SELECT user, channel, subscribed FROM subscriptions"))

    def next_sequence(self) -> int:
        """Return the number of the first message that comes next."""
        (last,) = self._connection.execute("SELECT max(sequence) FROM messages").fetchone()
        return FIRST_SEQUENCE if last is None else int(last) + 1

    def clear(self) -> None:
        """Forget everything but the accounts, and give the log's pages back."""
        tables = ("messages", "tokens", "subscriptions")
        self.commit([(f"DELETE FROM {table}", ()) for table in tables])
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


class Commits:
    """Brings changes to the disk, as the setting ``commit`` says.

    The store is its own: with ``write_behind`` a thread uses it.
    """

    def __init__(self, store: Store, commit: str, counts: Counts) -> None:
        self._store = store
        self._counts = counts
        self._thread = ThreadPoolExecutor(1, "commits") if commit == "write_behind" else None
        self._batch: list[tuple[Statement, Answer | None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def message(self, message: Message, answer: Answer) -> None:
        """Store a message, and answer before or after that."""
        values = (message.sequence, message.channel, message.sender, message.text)
        statement = ("INSERT INTO messages VALUES (?, ?, ?, ?)", values)
        if self._thread is not None:
            answer(None)
            answer = _already_answered
        self._add(statement, answer)

    def token(self, digest: str, user: str) -> None:
        """Store a login; raises Refused."""
        self._change(("INSERT INTO tokens VALUES (?, ?)", (digest, user)))

    def subscription(self, user: str, channel: str, subscribed: bool) -> None:
        """Store a join or a leave; raises Refused."""
        insert = "INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?)"
        self._change((insert, (user, channel, int(subscribed))))

    def _change(self, statement: Statement) -> None:
        if self._thread is None:
            self._store.commit([statement])
        else:
            self._add(statement, None)

    def _add(self, statement: Statement, answer: Answer | None) -> None:
        self._batch.append((statement, answer))
        if len(self._batch) >= BATCH_SIZE:
            self._hand_over()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(BATCH_WAIT_S, self._hand_over)

    def _hand_over(self) -> Future[None] | None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._batch = self._batch, []
        if self._thread is not None:
            return self._thread.submit(self._commit, batch)
        self._commit(batch)
        return None

    def _commit(self, batch: list[tuple[Statement, Answer | None]]) -> None:
        answers = [answer for _, answer in batch if answer is not None]
        problem = None
        try:
            self._store.commit([statement for statement, _ in batch])
            self._counts.stored += len(answers)
        except Refused as refused:
            problem = refused
            self._counts.not_stored += len(answers)
        for answer in answers:
            answer(problem)

    def flush(self) -> None:
        """Commit what waits, before this returns."""
        done = self._hand_over()
        if done is not None:
            done.result()

    def close(self) -> None:
        """Flush, and take nothing more."""
        self.flush()
        if self._thread is not None:
            self._thread.shutdown()
        self._store.close()


def _already_answered(_: Refused | None) -> None:
    """Answer nothing: a message that is written behind was acknowledged before."""
