"""Every client against every hostile HTTP server, by load workers: counted, bounded, in time."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

import pytest

from perflab.load.generator import Generator
from perflab.load.result import LoadResult
from perflab.load.workload import Burst, Request, Workload
from tests.load.hostile import Hostile, Script, beside, peak_bytes
from tests.load.hostile_http import PEERS, Peer
from tests.load.processes import a_worker

TIMEOUT_S = 2.0
OVERTIME_S = 5.0
MAX_GROWTH_BYTES = 200 * 1024 * 1024
CLIENTS = ["lean", "aiohttp", "httpx"]


@pytest.fixture
def fresh() -> Iterator[Generator]:
    """A worker that ends with the test: its peak of memory is that of the test."""
    with a_worker() as made:
        yield made


@pytest.fixture(scope="module")
def generator() -> Iterator[Generator]:
    with a_worker() as made:
        yield made


def load(generator: Generator, url: str, client: str, names: Sequence[str]) -> LoadResult:
    """Send one request to each name, all at once; user k has the k-th."""
    rows = tuple({"name": name} for name in names)
    workload = Workload(
        request=Request(path="/$name", data=rows),
        arrivals=Burst(size=len(names)),
        connections="per_request",
        client=client,  # type: ignore[arg-type]
        timeout_s=TIMEOUT_S,
    )
    return generator.run(workload, url)


@pytest.mark.parametrize("client", CLIENTS)
def test_each_peer_is_counted_once_with_its_class_in_time_and_in_little_memory(
    fresh: Generator, client: str
) -> None:
    paths = {f"/{number}".encode(): peer.script for number, peer in enumerate(PEERS)}
    before = peak_bytes(fresh.pids[0])
    with beside(Hostile([Script()], paths)) as url:
        # Floods apart: next to them the others would not be read before their time-out.
        for floods in (False, True):
            called = {str(n): peer for n, peer in enumerate(PEERS) if peer.floods == floods}
            result = load(fresh, url, client, list(called))
            check(result, list(called.values()), client)
            result.discard()
    assert peak_bytes(fresh.pids[0]) - before < MAX_GROWTH_BYTES


def check(result: LoadResult, peers: Sequence[Peer], client: str) -> None:
    table = result.requests.sort_values("user")
    assert list(table["user"]) == list(range(len(peers)))
    assert result.unsent == 0
    found = dict(zip((peer.name for peer in peers), table["error"], strict=True))
    assert found == {peer.name: peer.outcome_for(client) for peer in peers}
    took_s = (table["done_ns"].max() - table["planned_ns"].min()) / 1e9
    assert took_s < TIMEOUT_S + OVERTIME_S


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_never_accepts_is_a_timeout_and_one_that_is_not_there_is_connect(
    generator: Generator, client: str
) -> None:
    with socket.socket() as held, socket.socket() as filling:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        refused = load(generator, url, client, ["a"])
        held.listen(0)
        filling.connect(held.getsockname())
        full = load(generator, url, client, ["a", "b"])
    assert list(refused.requests["error"]) == ["connect"]
    assert list(full.requests["error"]) == ["timeout"] * 2
    for result in (refused, full):
        result.discard()
