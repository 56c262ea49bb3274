"""What the benchmarks share: their words, a server whose truth is known, loads, turns and tables.

Each is started from the root of the checkout, ``.venv/bin/python -m benchmarks.truth``; ``--help``
lists its options. They are no tests: they print tables of what the lab claims of itself, which hold
for the machine that they ran on. The client has the last core, the server the first.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perflab.load.clients.outcome import MEASURE
from perflab.load.records.result import LoadResult
from perflab.load.workers.generator import Generator
from perflab.load.workload import OpenLoop, Request, Stage, Workload

PATIENCE_S = 10.0
NOBODY = 65_534
NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} backlog=4096; location / {{ {answer}; }}
  }}
}}
"""
HELLO = 'return 200 "hello world\\n"'


def options(text: str | None, **named: Any) -> argparse.Namespace:
    """Read the command line; each option is named with its default, or with that and its help.

    ``text`` is the module's documentation, and what ``--help`` says. From here on SIGTERM ends a
    benchmark as Ctrl-C does, with the processes that it started.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, given in named.items():
        default, words = given if isinstance(given, tuple) else (given, "")
        kind: dict[str, Any] = {"type": type(default)}
        if isinstance(default, bool):
            kind = {"action": "store_true"}
        elif isinstance(default, list):
            kind = {"nargs": "+"}
        shown = f"{words} (default: {default})".strip()
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, help=shown, **kind)
    return parser.parse_args()


def turns(names: Sequence[Any], rounds: int) -> Iterator[Any]:
    """Yield each name once a round, in random order, so that drift hits all; progress is told."""
    for number in range(rounds):
        yield from random.sample(list(names), len(names))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


class Sittings:
    """Rows of a CSV file, to which every sitting adds; without a file they are kept nowhere."""

    def __init__(self, file: str) -> None:
        self._file = Path(file or os.devnull)
        kept = bool(file) and self._file.exists()
        table = pd.read_csv(self._file, keep_default_na=False, na_values="nan") if kept else None
        self.rows: list[dict[Any, Any]] = [] if table is None else table.to_dict("records")

    def left(
        self, cells: Sequence[tuple[str, ...]], names: Sequence[str], times: int
    ) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield each cell of the columns ``names``, with its number, until it has enough rows."""
        done = Counter(tuple(row[name] for name in names) for row in self.rows)
        for cell in turns(cells, times):
            if done[cell] < times:
                yield cell, done[cell]
                done[cell] += 1

    def add(self, **row: object) -> None:
        """Keep a row, and print it."""
        self.rows.append(row)
        print(row, flush=True)
        pd.DataFrame(self.rows).to_csv(self._file, index=False, na_rep="nan")


def show(rows: Sequence[Mapping[Any, object]]) -> None:
    """Print a table."""
    print(pd.DataFrame(rows).to_string(index=False))


def ratios(own: Sequence[float], others: Sequence[float]) -> str:
    """Return ``1.02 (0.97 to 1.10)``: the median of the ratios of each round, least and most."""
    found = [one / other for one, other in zip(own, others, strict=True)]
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def markdown(table: pd.DataFrame, rule: str = "---") -> str:
    """Return a table as Markdown; ``rule`` stands below each head."""
    rows = [list(table.columns), [rule] * len(table.columns), *table.to_numpy().tolist()]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def programs(place: Path, *packages: str) -> Path:
    """Install packages into an environment of their own; return the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    folder = place / "venv" / "bin"
    subprocess.run([folder / "pip", "install", "--quiet", *packages], check=True)
    return folder


def cores() -> tuple[int, int]:
    """Return the server's core and the client's."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        sys.exit("needs two cores, one for the server and one for the client")
    return available[0], available[-1]


def on_core(core: int, *words: object) -> list[str]:
    """Return a command that runs on one core."""
    return ["taskset", "-c", str(core), *map(str, words)]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def serving(words: Sequence[str], port: int, **given: Any) -> Iterator[int]:
    """Run a server until the end; yields its process id once it takes connections."""
    server = subprocess.Popen(words, **given)
    try:
        until = time.monotonic() + PATIENCE_S
        while not _answers(port):
            if server.poll() is not None or time.monotonic() > until:
                sys.exit(f"{words} does not answer")
            time.sleep(0.02)
        yield server.pid
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def nginx() -> Iterator[tuple[str, int]]:
    """Serve a constant on the server's core; yields address and process id of the master.

    Its only child serves. For root both run as nobody.
    """
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(program).exists():
        sys.exit("nginx is not installed (Debian: apt-get install nginx-light)")
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        config, log = Path(folder, "nginx.conf"), Path(folder, "error.log")
        config.write_text(NGINX.format(folder=folder, port=port, answer=HELLO))
        rights: dict[str, Any] = {}
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            rights = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        words = on_core(cores()[0], program, "-e", log, "-c", config)
        with serving(words, port, **rights) as pid:
            yield f"http://127.0.0.1:{port}/", pid


@contextmanager
def known_server(**given: object) -> Iterator[str]:
    """Run the known server on its core, with its options; yields the address."""
    port = free_port()
    program = Path(__file__).with_name("known_server.py")
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    command = on_core(cores()[0], sys.executable, program, f"--port={port}", *words)
    with serving(command, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def generator() -> Iterator[Generator]:
    """Keep one load worker on the client's core."""
    made = Generator([cores()[1]], {})
    made.start()
    try:
        yield made
    finally:
        made.close()


def open_load(rate: float, seconds: float, **words: Any) -> Workload:
    """Return so many requests a second; ``words`` are of the arrivals, or of the workload."""
    own = {name: words.pop(name) for name in ("timeout_s", "objectives") if name in words}
    arrivals = OpenLoop(stages=(Stage(rate=rate, duration_s=seconds),), **words)
    return Workload(request=Request(), arrivals=arrivals, **own)


def notes(url: str) -> np.ndarray:
    """Return the server's own record since the last call: rows of (came, answered) in ns."""
    with urllib.request.urlopen(f"{url}/record") as answer:
        return np.frombuffer(answer.read(), dtype=np.int64).reshape(-1, 2)


def measured(made: Generator, work: Workload, url: str) -> tuple[LoadResult, np.ndarray]:
    """Send a load; return its result and the rows of its measure stage, by planned instant."""
    result = made.run(work, url)
    rows = np.concatenate(result.rows)
    rows = np.sort(rows[rows["stage"] == MEASURE], order="planned_ns")
    return result, rows
