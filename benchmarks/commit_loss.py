"""What synchronous_commit=off gains, and what it loses when PostgreSQL is killed under load.

Users insert rows and note each one as soon as its commit is acknowledged. After some seconds every
process of the server is killed at once, the server starts again, and the noted rows that are gone
are counted. Beside "on" and "off" stand two ways to save flushes that lose nothing: commits that
wait for company (``commit_delay``), and several rows in one insert.

A kill loses what the server had not yet written. A power cut would also lose what the system had
not yet flushed. PostgreSQL flushes every 200 ms (``wal_writer_delay``) and warns that three times
as much may be lost (its manual, "Asynchronous Commit"). The users are threads of one process, so
the rates are lower than the server could reach.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import psycopg2

from benchmarks import bench
from tests.services.running import Service, database, server_pid, start

RESULT = "benchmarks/results/commit_loss.md"
INSERT = "INSERT INTO inferences (label, probability) VALUES {} RETURNING id"
# What each session sets, and the rows of one insert.
TREATMENTS: dict[str, tuple[tuple[str, ...], int]] = {
    "on": (("SET synchronous_commit = on",), 1),
    "on, commit_delay 2 ms": (("SET synchronous_commit = on", "SET commit_delay = 2000"), 1),
    "on, ten rows an insert": (("SET synchronous_commit = on",), 10),
    "off": (("SET synchronous_commit = off",), 1),
}


class User(threading.Thread):
    """Inserts rows until the server is gone; ``acknowledged`` holds each row's id and instant."""

    def __init__(self, postgres: Service, statements: tuple[str, ...], rows: int) -> None:
        super().__init__(daemon=True)
        self.connection = database(postgres)
        self.insert = INSERT.format(", ".join(["(1, 0.5)"] * rows))
        self.acknowledged: list[tuple[int, float]] = []
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def run(self) -> None:
        """Insert."""
        try:
            with self.connection.cursor() as cursor:
                while True:
                    cursor.execute(self.insert)
                    ids = cursor.fetchall()
                    now = time.monotonic()
                    self.acknowledged += [(number, now) for (number,) in ids]
        except psycopg2.Error:
            return


def kill(postgres: Service) -> None:
    """Kill all processes of the server; none may write between the first kill and the last."""
    main = psutil.Process(server_pid(postgres))
    processes = [main, *main.children(recursive=True)]
    for action in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            os.kill(process.pid, action)
    postgres.wait_ended()


def one(name: str, users: int, seconds: float) -> dict[str, Any]:
    """Kill a server under load; return what was acknowledged, and what of it is gone."""
    postgres = start("postgres").wait_healthy()
    try:
        threads = [User(postgres, *TREATMENTS[name]) for _ in range(users)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        kill(postgres)
        killed = time.monotonic()
        for thread in threads:
            thread.join(bench.PATIENCE_S)
        postgres.again().wait_healthy()
        with closing(database(postgres)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id FROM inferences")
            there = {number for (number,) in cursor.fetchall()}
    finally:
        postgres.instance.stop()
    noted = [row for thread in threads for row in thread.acknowledged]
    gone = [instant for number, instant in noted if number not in there]
    return {
        "treatment": name, "rows/s": len(noted) / seconds, "acknowledged": len(noted),
        "gone": len(gone), "ms": 1e3 * (killed - min(gone)) if gone else 0.0,
    }  # fmt: skip


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row of text for each treatment, its rate as a ratio to "on" of the same round."""
    base = rows[rows["treatment"] == "on"].set_index("round")["rows/s"]
    found = []
    for name, of_one in rows.groupby("treatment", sort=False):
        of_rounds = of_one.set_index("round")["rows/s"]
        ratio = bench.ratios(list(of_rounds), list(base[of_rounds.index]))
        found.append({
            "treatment": name, "kills": len(of_one), "rows/s, median": f"{of_rounds.median():,.0f}",
            "ratio to on (least to most)": ratio,
            "acknowledged": f"{of_one['acknowledged'].sum():,}",
            "gone after the kill": f"{of_one['gone'].sum():,}",
            "kills that lost rows": int((of_one["gone"] > 0).sum()),
            "most of a kill": f"{of_one['gone'].max():,}",
            "oldest of them, ms": f"{of_one['ms'].max():.0f}",
        })  # fmt: skip
    return pd.DataFrame(found)


def main() -> None:
    """Kill, in random order, and print and write the table."""
    given = bench.options(
        __doc__,
        times=(6, "kills of each treatment"),
        users=20,
        seconds=(3.0, "length of each load"),
        out=("", f"a file for the table, such as {RESULT}"),
    )
    rows = []
    for number, name in enumerate(bench.turns(list(TREATMENTS), given.times)):
        found = one(name, given.users, given.seconds)
        rows.append({"round": number // len(TREATMENTS), **found})
        print(rows[-1], flush=True)
    table = summary(pd.DataFrame(rows).sort_values("round", kind="stable"))
    bench.show(table.to_dict("records"))
    if given.out:
        words = f"{given.users} users, {given.seconds:g} s before each kill"
        head = f"# Rows that a kill loses\n\n*Written by `benchmarks/commit_loss.py`: {words}.*\n"
        Path(given.out).write_text(f"{head}\n{bench.markdown(table)}")


if __name__ == "__main__":
    main()
