"""The link: delays every byte by half a round trip, keeps its order, and passes on its limit."""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from link_ends import AS_STARTED, Upstream, change, connected, echo, read_all, send_until_blocked
from running import Service, Start, quiet_port, wait_until

BLOCK = bytes(1 << 18)
WAYS: list[dict[str, float]] = [{"round_trip_ms": 20}, {"bytes_per_s": 20_000_000}]


@pytest.fixture
def link(started_link: Service, link_upstream: Upstream) -> Iterator[Service]:
    link_upstream.serve = echo
    change(started_link, **AS_STARTED)
    yield started_link
    change(started_link, **AS_STARTED)


def echoes_ms(client: socket.socket, count: int) -> list[float]:
    times_ms = []
    for _ in range(count):
        begin = time.perf_counter_ns()
        client.sendall(b"x" * 100)
        assert len(client.recv(65536)) == 100
        times_ms.append((time.perf_counter_ns() - begin) / 1e6)
    return times_ms


def quick(times_ms: list[float]) -> float:
    """Return what the quickest tenth takes at most."""
    return statistics.quantiles(times_ms, n=10)[0]


@pytest.mark.alone
def test_a_round_trip_takes_the_delay_and_little_more(link: Service) -> None:
    more_ms: list[float] = []
    # Timers of the event loop would add up to a millisecond in each direction, to every echo of
    # every look; other programs add to some.
    while not more_ms or more_ms[-1] >= 5.7:
        assert len(more_ms) < 5, f"{more_ms} ms more than without a delay"
        with connected(link) as client:
            change(link, round_trip_ms=0)
            direct = echoes_ms(client, 100)
            change(link, round_trip_ms=5)
            delayed = echoes_ms(client, 200)
        assert min(delayed) >= 5
        more_ms.append(quick(delayed) - quick(direct))


def test_a_delay_that_shrinks_lets_no_byte_overtake(link: Service) -> None:
    with connected(link) as client:
        change(link, round_trip_ms=200)
        client.sendall(b"first")
        time.sleep(0.02)
        change(link, round_trip_ms=0)
        client.sendall(b"second")
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"firstsecond"


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_much_data_arrives_whole_and_in_order(link: Service, how: dict[str, float]) -> None:
    change(link, **how)
    sent = os.urandom(12 * 1024 * 1024)
    with connected(link) as client, ThreadPoolExecutor(1) as reader:
        received = reader.submit(read_all, client)
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert received.result(timeout=30) == sent


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_a_peer_that_does_not_read_stops_the_sender(
    link: Service, link_upstream: Upstream, how: dict[str, float]
) -> None:
    go_on = threading.Event()
    total: list[int] = []

    def read_late(connection: socket.socket) -> None:
        go_on.wait(timeout=30)
        total.append(len(read_all(connection)))

    link_upstream.serve = read_late
    change(link, **how)
    with connected(link) as client:
        client.settimeout(0.5)
        sent = send_until_blocked(client)
        go_on.set()
        client.settimeout(10)
        client.sendall(b"end")
        client.shutdown(socket.SHUT_WR)
        wait_until(lambda: bool(total), timeout_s=20)
    assert total == [sent + 3]


def test_without_upstream_the_client_is_closed(started: Start) -> None:
    lonely = started("link", {"upstream": quiet_port()})
    with connected(lonely) as client:
        client.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(10) == b""
    assert lonely.is_healthy()


# ---- bandwidth ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "shortest_s", "longest_s"),
    [
        # A limit for all of them together would take 2.5 s.
        ({"bytes_per_s": 800_000}, 0.49, 1.5),
        ({"bytes_per_s": 1_600_000, "shared_bytes_per_s": 800_000}, 2.4, 3.4),
    ],
    ids=["each", "all"],
)
def test_each_connection_has_the_limit_to_itself_or_all_share_it(
    link: Service,
    link_upstream: Upstream,
    limit: dict[str, float],
    shortest_s: float,
    longest_s: float,
) -> None:
    def give(connection: socket.socket) -> None:
        connection.sendall(bytes(400_000))
        connection.close()

    link_upstream.serve = give
    change(link, **limit)
    with contextlib.ExitStack() as opened, ThreadPoolExecutor(5) as readers:
        began_s = time.perf_counter()
        clients = [opened.enter_context(connected(link)) for _ in range(5)]
        received = readers.map(read_all, clients)
        assert [len(data) for data in received] == [400_000] * 5
        took_s = time.perf_counter() - began_s
    assert shortest_s < took_s < longest_s


def test_when_a_client_goes_in_mid_download_the_upstream_stops_soon(
    link: Service, link_upstream: Upstream
) -> None:
    ended = threading.Event()

    def pour_until_refused(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(BLOCK)
        ended.set()

    link_upstream.serve = pour_until_refused
    change(link, bytes_per_s=20_000)
    with connected(link) as client:
        client.recv(1000)
    assert ended.wait(timeout=10), "at 20 kB/s what it poured would take minutes"
