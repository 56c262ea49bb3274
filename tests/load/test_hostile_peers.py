"""Every client against every hostile HTTP server, in load workers: counted, bounded, in time."""

from __future__ import annotations

import socket

import pytest

from perflab.load.records.result import LoadResult
from perflab.load.workers.generator import Generator
from perflab.load.workload import Burst, Request, Workload
from tests.load.hostile import Hostile, beside, peak_bytes
from tests.load.hostile_http import PEERS
from tests.load.processes import a_worker

TIMEOUT_S = 1.5
OVERTIME_S = 5.0
MAX_GROWTH_BYTES = 200 * 1024 * 1024
CLIENTS = ["lean", "aiohttp", "httpx"]


def load(generator: Generator, url: str, client: str) -> LoadResult:
    """Send one request."""
    workload = Workload(
        request=Request(),
        arrivals=Burst(size=1),
        connections="per_request",
        client=client,  # type: ignore[arg-type]
        timeout_s=TIMEOUT_S,
    )
    return generator.run(workload, url)


@pytest.mark.parametrize("client", CLIENTS)
def test_each_peer_is_counted_once_with_its_class_in_time_and_in_little_memory(
    client: str,
) -> None:
    # The worker's peak of memory is that of the test.
    with a_worker() as fresh, socket.socket() as silent:
        before = peak_bytes(fresh.pids[0])
        errors = {}
        for peer in PEERS:
            with beside(Hostile([peer.script])) as url:
                result = load(fresh, url, client)
            (row,) = result.requests.to_dict("records")
            errors[peer.name] = row["error"]
            assert (row["done_ns"] - row["planned_ns"]) / 1e9 < TIMEOUT_S + OVERTIME_S
            result.discard()
        assert errors == {peer.name: peer.outcome_for(client) for peer in PEERS}
        silent.bind(("127.0.0.1", 0))
        refused = load(fresh, f"http://127.0.0.1:{silent.getsockname()[1]}", client)
        assert list(refused.requests["error"]) == ["connect"]
        refused.discard()
        assert peak_bytes(fresh.pids[0]) - before < MAX_GROWTH_BYTES
