"""The naive client: it counts what it sees, and is naive where it says so."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from link_ends import Upstream
from running import Service, Start, call, wait_until

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
CLIENTS = 2
SLOW_S = 0.05


def _answer(status: int, body: bytes = b"hello", length: int = 5) -> bytes:
    return f"HTTP/1.1 {status} Some\r\nContent-Length: {length}\r\n\r\n".encode() + body


def _slow(connection: socket.socket) -> None:
    time.sleep(SLOW_S)
    connection.sendall(_answer(202))


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# What a server does with a request before it closes, and what ends the request then.
ENDS: dict[str, Callable[[socket.socket], Any]] = {
    "status": lambda connection: connection.sendall(_answer(503)),
    "timed_out": lambda connection: connection.recv(1),
    "reset": _reset,
    "closed_by_server": lambda connection: connection.sendall(_answer(200, b"he")),
}


@contextlib.contextmanager
def serving(act: Callable[[socket.socket], Any]) -> Iterator[int]:
    """Answer one request per connection in some way, and close it; yields the port."""

    def serve(connection: socket.socket) -> None:
        with connection:
            connection.recv(4096)
            act(connection)

    with contextlib.closing(Upstream()) as server:
        server.serve = serve
        yield server.port


def load(started: Start, target: int, **settings: object) -> Any:
    """Start a client of a port, and have its load done; return the results."""
    wanted = {"clients": CLIENTS, "rate": 40, "duration_s": 0.4, "timeout_ms": 300, **settings}
    client = started("naive_client", {"target": target}, **wanted)
    # Nothing but settings: a port is another after every start, and would pass for a change.
    assert call(client.port, "GET", "/settings").body == dict(client.launch.settings)
    assert call(client.port, "POST", "/load").body == {"status": "running", "results": "/results"}

    def known() -> Any:
        return call(client.port, "GET", "/results").body

    wait_until(lambda: known()["status"] == "completed", timeout_s=60)
    results = known()["results"]
    assert results["attempted"] == results["answered"] + sum(results["errors"].values()) > 0
    return results


def counted(server: Service) -> tuple[int, int, int]:
    """Return connections and requests without this one's, and samples stored."""
    counts: dict[str, int] = call(server.port, "GET", "/counts").body
    return counts["accepted"] - 1, counts["requests"] - 1, counts["samples_stored"]


def test_with_a_connection_per_request_both_sides_count_the_same(started: Start) -> None:
    server = started("metricstream")
    before = counted(server)[:2]
    results = load(started, server.port)
    assert (results["answered"], results["hung"]) == (results["attempted"], 0)
    accepted, requests, stored = counted(server)
    # The looks at its health and counts have connections of their own.
    assert (accepted - before[0] - 1, requests - before[1] - 1) == (results["answered"],) * 2
    assert stored == results["answered"]
    assert 0 < results["connect_ms"] < results["mean_ms"]


@pytest.mark.parametrize("keep_alive", ["off", "on"])
def test_one_connection_for_all_requests_hangs_where_the_server_closes(
    started: Start, keep_alive: str
) -> None:
    server = started("metricstream", keep_alive=keep_alive)
    results = load(started, server.port, connection="persistent")
    assert counted(server)[2] == results["answered"]
    if keep_alive == "on":
        assert (results["answered"], results["hung"]) == (results["attempted"], 0)
        return
    # The first request of each is answered; each further one waits in vain, but not for ever.
    assert results["answered"] == CLIENTS
    assert results["hung"] == results["attempted"] - CLIENTS >= CLIENTS
    errors = results["errors"]
    assert errors["closed_by_server"] + errors["reset"] == results["hung"]


def test_it_paces_and_times_naively(started: Start) -> None:
    target = 1 / SLOW_S
    with serving(_slow) as port:
        results = load(started, port, clients=1, rate=target, duration_s=1.5)
    in_requests_s = results["mean_ms"] * results["answered"] / 1000
    seconds = results["total_duration_s"]
    # After each request but the last it sleeps the whole interval, whatever the request took.
    assert (results["answered"] - 1) / target + in_requests_s <= seconds
    assert results["achieved_rate"] == pytest.approx(results["answered"] / seconds, rel=1e-4)
    assert results["success_rate"] == pytest.approx(results["achieved_rate"] / target, rel=1e-4)
    assert results["success_rate"] < 0.6, "half the time is in requests"
    assert results["mean_ms"] >= 1000 * SLOW_S


@pytest.mark.parametrize("error", ENDS)
def test_what_ended_a_request_is_told_apart(started: Start, error: str) -> None:
    with serving(ENDS[error]) as port:
        results = load(started, port, rate=4)
    assert results["errors"][error] == results["attempted"] == CLIENTS
    assert results["hung"] == (CLIENTS if error == "timed_out" else 0)
    assert (results["mean_ms"], results["success_rate"]) == (None, 0)
