"""What it costs to know that a long answer came whole: CPU per MB, by checksum.

One server on one core sends bodies of 1 MiB, one worker on another reads them, as fast as it goes.
Ways to judge them take turns in random order; ratios to no judgement are paired by round.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import statistics
import zlib
from hashlib import sha256
from typing import Any

import bench
import uvloop

from perflab.load.generator import Generator
from perflab.load.workload import ClosedLoop, Request, Workload

BODY = random.Random(0).randbytes(1 << 20)
WAYS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "length": {"expect_bytes": len(BODY)},
    "crc32": {"expect_crc32": zlib.crc32(BODY)},
    "sha256": {"expect_sha256": sha256(BODY).hexdigest()},
}


class Answers(asyncio.Protocol):
    """Answers every request with the same body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport: Any = transport

    def data_received(self, _data: bytes) -> None:
        """Answer; a request comes in one piece."""
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY)
        self._transport.writelines([head, BODY])


def serve(port: Any) -> None:
    """Run the server in this (child) process."""
    os.sched_setaffinity(0, {bench.cores()[0]})

    async def work() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Answers, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(work())


def cost_us_per_mb(url: str, seconds: float, judged: dict[str, Any]) -> float:
    """Return the worker's CPU per MB read, in us."""
    generator = Generator([bench.cores()[1]], {})
    generator.start()
    arrivals = ClosedLoop(users=4, duration_s=seconds, warmup_s=0.2)
    try:
        result = generator.run(Workload(request=Request(**judged), arrivals=arrivals), url)
    finally:
        generator.close()
    read = int(result.measured(lambda rows: rows["bytes"][rows["error"] == 0]).sum())
    result.discard()
    return result.cpu_ns / 1e3 / (read / 1e6)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    port = spawn.Queue()
    serving = spawn.Process(target=serve, args=(port,), daemon=True)
    serving.start()
    url = f"http://127.0.0.1:{port.get()}/"
    seen: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(given.rounds):
        for name in random.sample(list(WAYS), len(WAYS)):
            seen[name].append(cost_us_per_mb(url, given.seconds, WAYS[name]))
    serving.kill()
    print(f"{'checksum':10}{'CPU us/MB':>11}{'against nothing':>26}")
    for name, values in seen.items():
        ratios = [own / other for own, other in zip(values, seen["nothing"], strict=True)]
        shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{name:10}{statistics.median(values):>11.0f}{shown:>26}")


if __name__ == "__main__":
    main()
