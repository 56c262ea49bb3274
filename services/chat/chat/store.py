"""SQLite: accounts, tokens, changed subscriptions and the history, in the service's data folder.

A commit is durable: write-ahead log, flushed to the disk at every commit (``synchronous = FULL``).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from chat.envelopes import Entry, Message
from chat.refusal import NotStored

SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (user TEXT PRIMARY KEY, hash TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    digest TEXT PRIMARY KEY, user TEXT NOT NULL, expires_s REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscriptions (
    user TEXT NOT NULL, channel TEXT NOT NULL, subscribed INTEGER NOT NULL,
    PRIMARY KEY (user, channel)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    sequence INTEGER PRIMARY KEY, channel TEXT NOT NULL, sender TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS starts (number INTEGER PRIMARY KEY);
CREATE INDEX IF NOT EXISTS messages_by_channel ON messages (channel, sequence);
"""
# How long a statement waits for a lock that a reader from outside may hold. It blocks the loop.
LOCK_WAIT_S = 0.5

Statement = tuple[str, Sequence[object]]
TOKEN = "INSERT INTO tokens (digest, user, expires_s) VALUES (?, ?, ?)"
SUBSCRIPTION = "INSERT OR REPLACE INTO subscriptions (user, channel, subscribed) VALUES (?, ?, ?)"
MESSAGE = "INSERT INTO messages (sequence, channel, sender, text) VALUES (?, ?, ?, ?)"
CLEARED = ("messages", "tokens", "subscriptions")


def message_statement(message: Message) -> Statement:
    """Return the statement that stores a message."""
    return MESSAGE, (message.sequence, message.channel, message.sender, message.text)


class Store:
    """The database; it may be used by one thread at a time, whichever that is."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(
            folder / "chat.sqlite",
            timeout=LOCK_WAIT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(SCHEMA)

    def commit(self, statements: Iterable[Statement]) -> None:
        """Run statements in one transaction and commit it.

        Raises
        ------
        NotStored
            The database refused; nothing of it is stored.
        """
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
            raise NotStored(f"SQLite: {error}") from None

    def prepare_accounts(self, accounts: Iterable[tuple[str, str]]) -> None:
        """Have exactly these accounts: user and password hash."""
        insert = "INSERT INTO accounts (user, hash) VALUES (?, ?)"
        self.commit([("DELETE FROM accounts", ()), *((insert, each) for each in accounts)])

    def password_hash(self, user: str) -> str | None:
        """Return an account's password hash, or None where there is no such account."""
        known = "SELECT hash FROM accounts WHERE user = ?"
        row = self._connection.execute(known, (user,)).fetchone()
        return str(row[0]) if row else None

    def tokens(self, remembered_s: float) -> list[tuple[str, str, float]]:
        """Forget tokens that expired so long ago; return the others: digest, user and expiry."""
        self.commit([("DELETE FROM tokens WHERE expires_s < ?", (time.time() - remembered_s,))])
        order = "SELECT digest, user, expires_s FROM tokens ORDER BY expires_s"
        return list(self._connection.execute(order))

    def subscriptions(self) -> list[tuple[str, str, int]]:
        """Return every join and leave that is in force."""
        return list(self._connection.execute("SELECT user, channel, subscribed FROM subscriptions"))

    def first_sequence(self, per_start: int) -> int:
        """Return a multiple of ``per_start`` above all sequences that were ever given out.

        It is on the disk before this returns: a start that stored no message is counted too.
        """
        highest = "SELECT coalesce(max({}), 0) FROM {}"
        (last,) = self._connection.execute(highest.format("sequence", "messages")).fetchone()
        (start,) = self._connection.execute(highest.format("number", "starts")).fetchone()
        number = max(int(start), int(last) // per_start) + 1
        self.commit([("DELETE FROM starts", ()), ("INSERT INTO starts VALUES (?)", (number,))])
        return number * per_start

    def history(self, channel: str, limit: int) -> list[Entry]:
        """Return a channel's latest messages, oldest first."""
        latest = (
            "SELECT sender, sequence, text FROM messages WHERE channel = ? "
            "ORDER BY sequence DESC LIMIT ?"
        )
        rows = self._connection.execute(latest, (channel, limit)).fetchall()
        return [Entry(*row) for row in reversed(rows)]

    def clear(self) -> None:
        """Forget everything but the accounts, and give the log's pages back."""
        self.commit([(f"DELETE FROM {table}", ()) for table in CLEARED])
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def facts(self) -> dict[str, object]:
        """Return how the database really works."""
        names = ("journal_mode", "synchronous")
        return {
            "version": sqlite3.sqlite_version,
            **{name: self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names},
        }

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
