"""How often ``perflab duel --why`` names a planted cause, in its first line and in one of three.

FastAPI with asyncpg, Flask under gunicorn with psycopg2, Node with pg, and Python's own server,
with PostgreSQL behind each, meet copies of themselves in which one thing is slower, and equal
copies. A cause is named if a line has the words that only it has: a statement, a function's name,
a wait. What is planted adds some ms to an answer. The sides of equal copies are exchanged in each
choice of their blocks as well, and it is counted how often a cause is named then. FastAPI, Flask,
pg and the drivers are installed into a folder of their own; without npm Node is left out.
``right_causes.csv`` has the duels so far, each with its lines and the commit that measured it; the
lines were said again from the recordings by later rules (waits for a core, larger answers).
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import bench
from perflab import api
from perflab.analysis.accounts.causes import causes_of, judged, measured_of
from perflab.recordings import Run
from perflab.recordings.causes import ALONE, PROFILED, part_of
from perflab.reports.causes import why_lines
from perflab.statistics.two_samples import Rate

# What all stacks do in plain functions, of which one is planted: PLANTED names it.
WORK = """
import json, os, threading, time
PLANTED = os.environ.get("PLANTED", "")
LOCK, LOG = threading.Lock(), open("log", "a")
ONE = "SELECT id, name FROM items WHERE id = {}"
MANY = "SELECT id, name FROM items WHERE id BETWEEN 1 AND 20"
NAMED = "SELECT id, name FROM items WHERE {} = 'item 7'"
COLUMN = "unindexed" if PLANTED == "index" else "name"

def serialize(rows):
    for _ in range(150 if PLANTED == "serializer" else 1):
        text = json.dumps([{"id": one, "name": name} for one, name in rows])
    return text + " " * (400_000 if PLANTED == "body" else 0)

def guarded():
    with LOCK:
        until = time.thread_time() + 0.002
        while time.thread_time() < until:
            pass

def note():
    LOG.write("answered\\n")
    LOG.flush()
    os.fsync(LOG.fileno())

def wait():
    time.sleep(0.004)

BY_NAME = {"lock": guarded, "flush": note, "blocking": wait}

def work():
    BY_NAME.get(PLANTED, int)()
"""
FASTAPI = """
import asyncio
from contextlib import asynccontextmanager
import asyncpg
from fastapi import FastAPI, Request, Response
from work import COLUMN, MANY, NAMED, ONE, PLANTED, os, serialize, time, work

@asynccontextmanager
async def pool(app):
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=4, max_size=4) as app.pool:
        yield

app = FastAPI(lifespan=pool)

async def audit(request: Request, call_next):
    until = time.thread_time() + 0.001
    while time.thread_time() < until:
        pass
    return await call_next(request)

for _ in range(2 if PLANTED == "middleware" else 1):
    app.middleware("http")(audit)

async def rows_of(db):
    await db.fetch(NAMED.format(COLUMN))
    if PLANTED == "loop":
        return [await db.fetchrow(ONE.format("$1"), number) for number in range(1, 21)]
    return await db.fetch(MANY)

@app.get("/")
async def index():
    if PLANTED == "connection":
        db = await asyncpg.connect(os.environ["DATABASE_URL"])
        rows = await rows_of(db)
        await db.close()
    else:
        async with app.pool.acquire() as db:
            rows = await rows_of(db)
    if PLANTED == "sleep":
        await asyncio.sleep(0.005)
    work()
    return Response(serialize([tuple(row) for row in rows]), media_type="application/json")
"""
FLASK = """
import threading
import psycopg2
from flask import Flask, Response
from work import COLUMN, MANY, NAMED, ONE, PLANTED, os, serialize, work

app, OF_THREAD = Flask(__name__), threading.local()

def connection():
    if PLANTED == "connection" or not hasattr(OF_THREAD, "db"):
        OF_THREAD.db = psycopg2.connect(os.environ["DATABASE_URL"])
        OF_THREAD.db.autocommit = True
    return OF_THREAD.db

def rows():
    with connection().cursor() as cursor:
        cursor.execute(NAMED.format(COLUMN))
        if PLANTED == "loop":
            found = []
            for number in range(1, 21):
                cursor.execute(ONE.format("%s"), (number,))
                found.append(cursor.fetchone())
            return found
        cursor.execute(MANY)
        return cursor.fetchall()

@app.get("/")
def index():
    found = rows()
    work()
    return Response(serialize(found), mimetype="application/json")
"""
PLAIN = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from flask_app import PLANTED, os, rows, serialize, work

class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0 if PLANTED == "two writes" else -1
    def do_GET(self):
        body = serialize(rows()).encode()
        work()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""
NODE = """
const http = require("http"), { Pool } = require("pg");
const planted = process.env.PLANTED;
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 4 });
function match() { return /^(a+)+$/.test("a".repeat(19) + "b"); }
function litter() {
  let last = [];
  for (let i = 0; i < 60000; i++) last = [last.length, { i }, String(i)];
  return last;
}
function defaults() { return structuredClone(large); }
const large = Array.from({ length: 3000 }, (_, n) => ({ n }));
const work = { regex: match, garbage: litter, copy: defaults }[planted] || (() => 0);
http.createServer(async (request, answer) => {
  await pool.query("SELECT id FROM items WHERE name = 'item 7'");
  const { rows } = await pool.query("SELECT id, name FROM items WHERE id BETWEEN 1 AND 20");
  work();
  answer.setHeader("Content-Type", "application/json");
  answer.end(JSON.stringify(rows));
}).listen(process.env.PORT, "127.0.0.1");
"""
FILL = '''
import os, psycopg2
with psycopg2.connect(os.environ["DATABASE_URL"]) as db:
    db.cursor().execute("""
        CREATE TABLE items (id int PRIMARY KEY, name text, unindexed text);
        INSERT INTO items SELECT n, 'item ' || n, 'item ' || n FROM generate_series(1, 30000) n;
        CREATE INDEX ON items (name);
    """)
'''
COMMANDS = {
    "FastAPI": "uvicorn app:app --port {port} --no-access-log",
    "Flask": "gunicorn --threads 4 --bind 127.0.0.1:{port} flask_app:app",
    "Node": "node server.js",
    "plain": "python plain.py",
}
NEEDED = ("fastapi", "uvicorn", "asyncpg", "flask", "gunicorn", "psycopg2-binary")
EQUAL = ""
# By stack and what is planted: words that a line which names it has.
CAUSES = {
    ("FastAPI", "loop"): "statements a request instead of",
    ("FastAPI", "serializer"): "serialize",
    ("FastAPI", "sleep"): "waits for a timer",
    ("FastAPI", "blocking"): "waits for the end of a sleep",
    ("FastAPI", "connection"): "connections opened",
    ("FastAPI", "middleware"): "audit",
    ("Flask", "index"): "name FROM items WHERE unindexed",
    ("Flask", "lock"): "guarded",
    ("Flask", "flush"): "waits for a flush to disk",
    ("Flask", "body"): "answers of",
    ("Node", "regex"): "match",
    ("Node", "copy"): "defaults",
    ("Node", "garbage"): "litter",
    ("plain", "two writes"): "delayed acknowledgement",
    ("FastAPI", EQUAL): "",
    ("Flask", EQUAL): "",
    ("Node", EQUAL): "",
}


def install(place: Path) -> Path:
    """Write the stacks into a folder, with what they need; return where their programs are."""
    programs = bench.programs(place, *NEEDED)
    texts = {"work": WORK, "app": FASTAPI, "flask_app": FLASK, "plain": PLAIN, "fill": FILL}
    for name, text in texts.items():
        (place / f"{name}.py").write_text(text)
    if npm := shutil.which("npm"):
        (place / "server.js").write_text(NODE)
        subprocess.run([npm, "install", "--silent", "pg"], check=True, cwd=place)
        (programs / "node").symlink_to(str(shutil.which("node")))
    return programs


def named_after_exchange(run: Run, sides: tuple[str, str]) -> float:
    """Return in which share of all exchanges of sides in some blocks a cause is named."""
    alone, profiled = part_of(run, ALONE), part_of(run, PROFILED)
    assert alone is not None
    accounts = measured_of(alone, "accounts")
    functions = measured_of(profiled, "functions") if profiled else pd.DataFrame()
    other, blocks = dict(zip(sides, reversed(sides), strict=True)), sorted({*accounts["block"]})
    named = []
    # The first block stays as it is: to exchange all blocks changes signs only.
    for choice in product((False, True), repeat=len(blocks) - 1):
        chosen = {block for block, is_exchanged in zip(blocks[1:], choice, strict=True)
                  if is_exchanged}  # fmt: skip
        tables = []
        for table in (accounts, functions):
            treatment = table.get("treatment", pd.Series(dtype=str))
            is_chosen = table.get("block", pd.Series(dtype=int)).isin(chosen)
            exchanged = treatment.where(~is_chosen, treatment.map(other))
            tables.append(table.assign(treatment=exchanged))
        causes = judged(tables[0], tables[1], *sides)
        named.append(bool(causes and causes.causes))
    return sum(named) / len(named)


def duel(place: Path, programs: Path, stack: str, planted: str) -> dict[str, Any]:
    """Carry out one duel; return whether its lines name what was planted."""
    variants = [
        f"{name}=command:env 'PLANTED={what}' {programs}/{COMMANDS[stack]}"
        for name, what in (("old", EQUAL), ("new", planted))
    ]
    run = api.run("custom_service", {
        "variants": variants, "folder": str(place), "needs": ["db=postgres"],
        "env": ["DATABASE_URL={db.url}"], "setup": f"{programs}/python fill.py", "why": True,
        "blocks": 3, "duration_s": 1.0, "warmup_s": 1.0, "wait_s": 600,
    })  # fmt: skip
    sides = "variant=new", "variant=old"
    causes, lines = causes_of(run, *sides), why_lines(run, *sides)
    named = [bool(planted) and CAUSES[stack, planted] in line for line in lines]
    whole = causes.response.change if causes else 0.0
    explained = [each.explains_ms for each in causes.causes] if causes else []
    left = whole - sum(ms for ms in explained if not math.isnan(ms))
    return {
        "first": any(named[:1]), "one of three": any(named),
        "any": bool(causes and causes.causes), "change_ms": whole,
        "unexplained": abs(left / whole) if whole else 0.0,
        "exchanged": "" if planted else named_after_exchange(run, sides),
        "lines": " | ".join(lines),
        "run": run.run_id, "commit": str(run.record.code.get("commit"))[:8],
    }  # fmt: skip


def summary(rows: pd.DataFrame) -> list[Mapping[str, object]]:
    """Return a row for each cause."""
    return [
        {
            "stack": stack,
            "planted": planted or "nothing",
            "first line": Rate(int(of_one["first"].sum()), len(of_one)).text(),
            "one of three": Rate(int(of_one["one of three"].sum()), len(of_one)).text(),
            "anything": Rate(int(of_one["any"].sum()), len(of_one)).text(),
            "change, ms": f"{of_one['change_ms'].median():.2f}",
            "unexplained": f"{of_one['unexplained'].median():.0%}",
            "exchanged": "" if planted else f"{pd.to_numeric(of_one['exchanged']).mean():.1%}",
        }
        for (stack, planted), of_one in rows.groupby(["stack", "planted"], sort=False)
    ]


def main() -> None:
    """Carry out every duel, in random order, and print every one and the table."""
    given = bench.options(
        __doc__,
        times=(3, "duels of each cause, with those in the file"),
        only=("", "what is planted, by its first letters: loop,body"),
        out=("", "a CSV file to which every duel is added; what it holds is not carried out again"),
    )
    chosen = [
        cell
        for cell in CAUSES
        if (cell[0] != "Node" or shutil.which("npm"))
        and (not given.only or cell[1].startswith(tuple(given.only.split(","))))
    ]
    kept = bench.Sittings(given.out)
    with tempfile.TemporaryDirectory() as folder:
        programs = install(Path(folder)) if given.times else Path()
        for (stack, planted), _ in kept.left(chosen, ["stack", "planted"], given.times):
            result = duel(Path(folder), programs, stack, planted)
            kept.add(stack=stack, planted=planted, **result)
    bench.show(summary(pd.DataFrame(kept.rows)))


if __name__ == "__main__":
    main()
