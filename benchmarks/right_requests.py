"""How often a duel of a small shop names the one of its three requests that became slower.

A shop under gunicorn (list, create, login; Flask, psycopg2, PostgreSQL that the lab starts) meets
copies of itself in which one request is slower: ``create``, one in ten, waits 10% longer; ``list``
reads by a column that has lost its index; ``login`` holds a lock while it waits 30 ms, longer than
until the next request. Equal copies are the fourth. Both sides get the same open load, so that a
request that waits takes no turn of another, and all else is a duel's default. The planted row is
right if its mean or its p99 is slower for certain; of the other requests no row may differ. The
first line is kept. Flask, gunicorn and psycopg2 are installed into a folder of their own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import bench
from perflab import api
from perflab.analysis.evaluation import evaluate
from perflab.analysis.results import DIFFERENT
from perflab.recordings.responses import split_request
from perflab.reports.duel_answer import answer
from perflab.reports.duel_pairs import pairs_of
from perflab.statistics.two_samples import Rate

SHOP = """
import os, threading, time
import psycopg2
from flask import Flask, request

PLANTED = os.environ.get("PLANTED", "")
COLUMN = "unindexed" if PLANTED == "list" else "name"
LOCK, OF_THREAD = threading.Lock(), threading.local()
app = Flask(__name__)

def run(statement, *values):
    if not hasattr(OF_THREAD, "db"):
        OF_THREAD.db = psycopg2.connect(os.environ["DATABASE_URL"])
        OF_THREAD.db.autocommit = True
    cursor = OF_THREAD.db.cursor()
    cursor.execute(statement, values)
    return cursor

@app.get("/items")
def items():
    name = "item " + request.args["page"]
    return run(f"SELECT id, name FROM items WHERE {COLUMN} = %s", name).fetchall()

@app.post("/orders")
def create():
    time.sleep(0.022 if PLANTED == "create" else 0.02)
    run("INSERT INTO orders VALUES (%s)", request.get_json()["id"])
    return {}, 201

@app.post("/login")
def login():
    if PLANTED == "login":
        with LOCK:
            time.sleep(0.03)
    else:
        time.sleep(0.03)
    return {"session": 1}
"""
FILL = '''
import os, psycopg2
with psycopg2.connect(os.environ["DATABASE_URL"]) as db:
    db.cursor().execute("""
        CREATE TABLE orders (id text PRIMARY KEY);
        CREATE TABLE items (id int PRIMARY KEY, name text, unindexed text);
        INSERT INTO items SELECT n, 'item ' || n, 'item ' || n FROM generate_series(1, 30000) n;
        CREATE INDEX ON items (name);
    """)
'''
REQUESTS: list[dict[str, Any]] = [
    {"name": "list", "weight": 6, "path": "/items?page={random:1-30000}"},
    {"name": "create", "weight": 1, "method": "POST", "path": "/orders", "body": '{"id": "{uuid}"}',
     "headers": {"Content-Type": "application/json"}, "expect_status": 201},
    {"name": "login", "weight": 3, "method": "POST", "path": "/login"},
]  # fmt: skip
EQUAL = ""
PLANTED = (*(request["name"] for request in REQUESTS), EQUAL)
TIMES = ("mean_ms", "p99_ms")


def install(place: Path) -> Path:
    """Write the shop into a folder, with what it needs; return where its programs are."""
    (place / "shop.py").write_text(SHOP)
    (place / "fill.py").write_text(FILL)
    return bench.programs(place, "flask", "gunicorn", "psycopg2-binary")


def duel(place: Path, programs: Path, planted: str, rate: float) -> dict[str, Any]:
    """Carry out one duel; return which requests it says became slower, and its first line."""
    command = f"{programs}/gunicorn --threads 8 --bind 127.0.0.1:{{port}} shop:app"
    began = time.monotonic()
    run = api.run("custom_service", {
        "variants": [f"{name}=command:env 'PLANTED={what}' {command}"
                     for name, what in (("old", EQUAL), ("new", planted))],
        "folder": str(place), "needs": ["db=postgres"], "env": ["DATABASE_URL={db.url}"],
        "setup": f"{programs}/python fill.py", "requests": REQUESTS, "rate": rate, "wait_s": 600,
    })  # fmt: skip
    (pair,) = pairs_of(evaluate(run), (), ())
    different, slower = set(), set()
    for response, finding in pair.findings.items():
        base, request = split_request(response)
        if request and finding.verdict.result in DIFFERENT:
            different.add(request)
            if base in TIMES and finding.effect and finding.effect.estimate > 1:
                slower.add(request)
    own = pair.findings[f"of_{planted or 'list'}_mean_ms"].effect
    return {
        "right": planted in slower if planted else not different,
        "others": " ".join(sorted(different - {planted})),
        "ratio": own.estimate if own else float("nan"), "line": answer(pair),
        "minutes": (time.monotonic() - began) / 60, "run": run.run_id,
        "commit": str(run.record.code.get("commit"))[:8],
    }  # fmt: skip


def summary(rows: pd.DataFrame) -> list[Mapping[str, object]]:
    """Return a row for each request in which something was planted, and one for equal copies."""
    return [
        {
            "slower": planted or "nothing",
            "right": Rate(int(of_one["right"].sum()), len(of_one)).text(),
            "another named": Rate(int((of_one["others"] != "").sum()), len(of_one)).text(),
            "ratio": f"{of_one['ratio'].median():.3f}",
            "minutes": f"{of_one['minutes'].mean():.1f}",
        }
        for planted, of_one in rows.groupby("planted", sort=False)
    ]


def main() -> None:
    """Carry out every duel, in random order, and print every one and the table."""
    given = bench.options(
        __doc__,
        times=(3, "duels of each, with those in the file"),
        rate=(60.0, "requests/s"),
        out=("", "a CSV file to which every duel is added; what it holds is not carried out again"),
    )
    kept = bench.Sittings(given.out)
    with tempfile.TemporaryDirectory() as folder:
        programs = install(Path(folder)) if given.times else Path()
        cells = [(planted,) for planted in PLANTED]
        for (planted,), _ in kept.left(cells, ["planted"], given.times):
            kept.add(planted=planted, **duel(Path(folder), programs, planted, given.rate))
    bench.show(summary(pd.DataFrame(kept.rows)))


if __name__ == "__main__":
    main()
