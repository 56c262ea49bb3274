"""How long the registry reads on from the store after its client has gone.

The whole stack runs as plain processes; the link is so slow that no download ends by itself. A
client asks for the model, and goes without a word once the store has begun to answer. From then on
the service's sockets to the link are looked at every millisecond, until none is left. Promised: a
second. ``blocking`` is left out: its event loop, which would notice, is what waits.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import struct
import time
from collections.abc import Callable
from itertools import product

import psutil

from perflab.host.placing import placement
from perflab.stacks.choice import choose
from perflab.stacks.residents import Residents
from perflab.systems.registry.service import PATH, stack

PROMISED_S, PATIENCE_S = 1.0, 20.0
MODEL_BYTES, BYTES_PER_S = 24_834_009, 200_000
HANDLERS = ("threads", "to_thread", "executor", "async", "ranged")
WAYS = tuple(product(HANDLERS, ("buffered", "streamed")))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=12, help="that go, one after the other")
    asked = parser.parse_args()
    plans = {
        f"{handler}, {body}": stack(
            {"handler": handler, "body": body},
            model_bytes=MODEL_BYTES,
            models=1,
            link={"bytes_per_s": BYTES_PER_S},
        )
        for handler, body in WAYS
    }
    residents = Residents(choose("process"), plans, placement(), f"client-gone-{os.getpid()}")
    residents.prepare()
    residents.start()
    try:
        print(f"{'way':24}{'median ms':>12}{'largest ms':>12}")
        slowest = max(_row(residents, way, asked.clients) for way in plans)
    finally:
        residents.stop()
    print(f"promised {PROMISED_S:g} s: {'kept' if slowest <= PROMISED_S else 'BROKEN'}")


def _row(residents: Residents, way: str, clients: int) -> float:
    """Print one way's row; returns its largest time in s."""
    residents.activate(way)
    active = residents.active(way)
    service, link = active["registry"].launch.port, active["link"].launch.port
    processes = [psutil.Process(pid) for pid in active["registry"].pids()]

    def reads() -> bool:
        return any(
            each.raddr and each.raddr.port == link and each.status == psutil.CONN_ESTABLISHED
            for process in processes
            for each in process.net_connections("tcp")
        )

    took = [_once(service, reads) for _ in range(clients)]
    print(f"{way:24}{statistics.median(took) * 1e3:12.1f}{max(took) * 1e3:12.1f}")
    return max(took)


def _once(service: int, reads: Callable[[], bool]) -> float:
    """Be a client that goes mid-download; returns for how long the store was read after that."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", service))) as client:
        client.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        _wait(reads)
        time.sleep(0.2)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone = time.monotonic()
    _wait(lambda: not reads())
    return time.monotonic() - gone


def _wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not until():
        if time.monotonic() > end:
            raise SystemExit(f"nothing changed within {PATIENCE_S:g} s")
        time.sleep(0.001)


if __name__ == "__main__":
    main()
