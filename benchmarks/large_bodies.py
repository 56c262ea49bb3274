"""What it costs a client to take large bodies: CPU per MB of the lean client, curl and wrk.

One server on one core sends bodies of 16 MiB, one client on another reads them over one connection.
Clients take turns in random order in every round, and ratios are to curl within a round, because
the machine drifts between them. CPU is the client's own, from the kernel's accounts of its process;
what starting takes is measured by a request for nothing, and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import resource
import shutil
import statistics
import subprocess
import zlib
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

import bench
import uvloop

from perflab.load.generator import Generator
from perflab.load.workload import ClosedLoop, Request, Workload

SIZE = 16 << 20
BODY = random.Random(0).randbytes(SIZE)
LEAN: dict[str, dict[str, Any]] = {
    "lean, length": {"path": "/1", "expect_bytes": SIZE},
    "lean, CRC-32": {"path": "/1", "expect_bytes": SIZE, "expect_crc32": zlib.crc32(BODY)},
    "lean, SHA-256": {"path": "/1", "expect_sha256": sha256(BODY).hexdigest()},
    "lean, chunked": {"path": "/chunked", "expect_bytes": SIZE},
}
CURL, WRK = "curl", "wrk"
NOT_INSTALLED = "not installed"


class Answers(asyncio.Protocol):
    """Answers ``/1`` with the body, ``/chunked`` with it as one chunk, ``/0`` with nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """Answer; a request comes in one piece."""
        body = b"" if data.startswith(b"GET /0 ") else BODY
        if data.startswith(b"GET /chunked "):
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % SIZE
            self._transport.writelines([head, BODY, b"\r\n0\r\n\r\n"])
            return
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.writelines([head, body])


def serve(port: Any) -> None:
    """Run the server in this (child) process."""
    os.sched_setaffinity(0, {bench.cores()[0]})

    async def work() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Answers, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(work())


def of_a_child(command: list[str]) -> tuple[float, str]:
    """Run a program on the client's core; return its CPU in us, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pinned = ["taskset", "-c", str(bench.cores()[1]), *command]
    done = subprocess.run(pinned, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used_s * 1e6, done.stdout


def curl_us_per_mb(url: str, bodies: int) -> float:
    """Return curl's CPU per MB, over one connection, to /dev/null."""

    def of(path: str, count: int) -> float:
        pairs = [word for _ in range(count) for word in ("-o", "/dev/null", f"{url}{path}")]
        return of_a_child(["curl", "-s", *pairs])[0]

    return (of("1", bodies) - of("0", bodies)) / (bodies * SIZE / 1e6)


def wrk_us_per_mb(url: str, bodies: int) -> float:
    """Return wrk's CPU per MB, over one connection, for about as long as curl takes."""
    seconds = max(1, round(bodies * SIZE / 2e9))
    used, said = of_a_child(["wrk", "-t1", "-c1", f"-d{seconds}s", f"{url}1"])
    requests = int(said.split(" requests in ")[0].split()[-1])
    return used / (requests * SIZE / 1e6)


def lean_us_per_mb(made: Generator, url: str, bodies: int, judged: dict[str, Any]) -> float:
    """Return the worker's CPU per MB between the first and the last measured start."""
    arrivals = ClosedLoop(users=1, requests=bodies + 1, warmup_requests=1)
    result = made.run(Workload(request=Request(**judged), arrivals=arrivals), url)
    used, read = result.cpu_ns, result.measured(lambda rows: rows["bytes"][rows["error"] == 0])
    result.discard()
    if len(read) != bodies + 1:
        raise SystemExit("the lean client did not get every body")
    # The last one comes after its start.
    return used / 1e3 / (int(read.sum() - read[-1]) / 1e6)


def table(seen: dict[str, list[float]]) -> str:
    """Return medians, and ratios to curl paired by round, as text."""
    lines = [f"{'client':14}{'CPU us/MB':>11}{'against curl':>26}"]
    for name, values in seen.items():
        if not values:
            lines.append(f"{name:14}{NOT_INSTALLED:>37}")
            continue
        ratios = [own / other for own, other in zip(values, seen[CURL], strict=False)]
        shown = NOT_INSTALLED
        if ratios:
            shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append(f"{name:14}{statistics.median(values):>11.0f}{shown:>26}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bodies", type=int, default=48)
    given = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    port = spawn.Queue()
    serving = spawn.Process(target=serve, args=(port,), daemon=True)
    serving.start()
    url = f"http://127.0.0.1:{port.get()}/"
    with bench.generator() as made:
        ways: dict[str, Callable[[], float]] = {
            name: partial(lean_us_per_mb, made, url, given.bodies, judged)
            for name, judged in LEAN.items()
        }
        others = {CURL: curl_us_per_mb, WRK: wrk_us_per_mb}
        for name, measure in others.items():
            if shutil.which(name):
                ways[name] = partial(measure, url, given.bodies)
        seen: dict[str, list[float]] = {name: [] for name in (*others, *LEAN)}
        for _ in range(given.rounds):
            for name in random.sample(list(ways), len(ways)):
                seen[name].append(ways[name]())
    serving.kill()
    print(table(seen))


if __name__ == "__main__":
    main()
