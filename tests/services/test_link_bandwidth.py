"""The link's bandwidth: what arrives is the limit, and what it costs is little."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from selectors import EVENT_READ, DefaultSelector

import pytest
from link_ends import AS_STARTED, Upstream, change, connected
from running import Service

BLOCK = bytes(1 << 18)


@pytest.fixture
def link(started_link: Service, link_upstream: Upstream) -> Iterator[Service]:
    link_upstream.serve = pour
    yield started_link
    change(started_link, **AS_STARTED)


def pour(connection: socket.socket) -> None:
    """Send without end."""
    while True:
        connection.sendall(BLOCK)


def arrives(clients: list[socket.socket], seconds: float) -> float:
    """Return the bytes per second that clients receive together, once they do so steadily."""
    selector = DefaultSelector()
    for client in clients:
        selector.register(client, EVENT_READ, bytearray(1 << 20))
    _received(selector, 0.5)
    begin = time.perf_counter()
    received = _received(selector, seconds)
    return received / (time.perf_counter() - begin)


def assert_arrives(clients: list[socket.socket], expected: float) -> None:
    """Hold what clients receive over seconds against a limit.

    A busy machine that lets an end stand still moves bytes from one look to the next: of four looks
    one must see the limit. A link that keeps another rate shows it in all of them.
    """
    seen: list[float] = []
    while not seen or seen[-1] != pytest.approx(expected, rel=0.03):
        assert len(seen) < 4, f"{seen} bytes/s arrive, {expected:g} are the limit"
        seen.append(arrives(clients, 2.0))


def _received(selector: DefaultSelector, seconds: float) -> int:
    received, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        for key, _ in selector.select(0.02):
            received += key.fileobj.recv_into(key.data)  # type: ignore[union-attr]
    return received


@pytest.mark.alone
def test_what_arrives_is_the_limit_of_each_connection(link: Service) -> None:
    change(link, bytes_per_s=800_000, round_trip_ms=200)
    with contextlib.ExitStack() as opened:
        assert_arrives([opened.enter_context(connected(link)) for _ in range(5)], 4_000_000)


def test_when_a_client_goes_in_mid_download_the_upstream_stops_soon(
    link: Service, link_upstream: Upstream
) -> None:
    ended = threading.Event()

    def pour_until_refused(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            pour(connection)
        ended.set()

    link_upstream.serve = pour_until_refused
    change(link, bytes_per_s=20_000)
    with connected(link) as client:
        client.recv(1000)
    assert ended.wait(timeout=10), "at 20 kB/s what it poured would take minutes"
