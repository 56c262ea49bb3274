"""How long connections live, against a server that counts them."""

from __future__ import annotations

from typing import Any

import pytest

from perflab.load.workload import ClosedLoop, Connections, Workload
from tests.load.meter import Meter, drive, on_loop

CLOSED = ClosedLoop(users=1, requests=1)


@pytest.mark.parametrize("client", ["lean", "aiohttp", "httpx"])
@pytest.mark.parametrize(("reuse", "expected"), [("keep_alive", [5]), ("per_request", [1] * 5)])
def test_a_connection_has_all_requests_or_one(client: str, reuse: str, expected: list[int]) -> None:
    words = {"request": {}, "arrivals": CLOSED, "client": client, "connections": reuse}
    work = Workload.model_validate(words)

    async def go() -> Meter:
        async with (meter := Meter()) as url:
            assert await drive(work, url, 5) == [""] * 5
        return meter

    meter: Meter = on_loop(go)
    assert [len(connection.requests) for connection in meter.connections] == expected
    if client == "lean":
        says = {
            b"connection: close" in request.head
            for seen in meter.connections
            for request in seen.requests
        }
        assert says == {reuse == "per_request"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, Connections()),
        ({"connections": "keep_alive"}, Connections()),
        ({"connections": "per_request"}, Connections(reuse="per_request")),
        ({"connections": 7}, Connections(most=7)),
    ],
)
def test_words_and_caps_stand_for_connections(words: Any, expected: Connections) -> None:
    work = Workload.model_validate({"request": {}, "arrivals": CLOSED, **words})
    assert work.connections == expected
    assert Workload.model_validate_json(work.model_dump_json()) == work
