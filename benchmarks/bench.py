"""What the benchmarks share: cores, the known server, and loads against it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from perflab.load.generator import Generator
from perflab.load.outcome import MEASURE
from perflab.load.result import LoadResult
from perflab.load.workload import Workload

PATIENCE_S = 10.0


def cores() -> tuple[int, int]:
    """Return the server's core and the client's."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        sys.exit("needs two cores, one for the server and one for the client")
    return available[0], available[-1]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server takes connections; end where it does not."""
    until = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    server.kill()
    sys.exit(f"{server.args} does not answer")


@contextmanager
def known_server(*options: str) -> Iterator[tuple[str, int]]:
    """Run the known server on its core; yields address and process id."""
    program = Path(__file__).with_name("known_server.py")
    command = ["taskset", "-c", str(cores()[0]), sys.executable, str(program), *options]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(child.stdout.readline())}", child.pid
    finally:
        child.kill()
        child.wait()


@contextmanager
def generator() -> Iterator[Generator]:
    """Keep one worker on the client's core."""
    made = Generator([cores()[1]], {})
    made.start()
    try:
        yield made
    finally:
        made.close()


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
