"""Connections: how long they live, and which requests wait for one, count, and come first."""

from __future__ import annotations

import asyncio
import time
from itertools import chain
from typing import Any

import pytest

from perflab.load.clients.client import LeanClient
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.targets import split
from perflab.load.workload import ClosedLoop, Connections, Request, Reuse, Workload
from tests.load.hostile import OK, Hostile, Part, Script, check, on_uvloop, play
from tests.load.meter import Meter, drive


@pytest.mark.parametrize("connection", ["keep_alive", "per_request"])
def test_requests_above_the_cap_wait_their_turn(connection: str) -> None:
    script = Script((Part(OK, 0.02),), "keep")
    report = on_uvloop(
        lambda: play([script], 6, together=True, connections=1, connection=connection)
    )
    check(report, 6)
    assert report.errors == [""] * 6
    sent = [exchange.sent_ns for exchange in report.exchanges]
    assert sorted(sent) == sent
    assert sent[-1] - sent[0] > 90_000_000
    assert report.capped == 5


@pytest.mark.parametrize("connection", ["keep_alive", "per_request"])
def test_waiting_requests_get_connections_before_users_who_return_at_once(
    connection: Reuse,
) -> None:
    turns: list[int] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        async with Hostile([Script((Part(OK),), "keep")]) as url:
            life = Connections(reuse=connection, most=2)
            client = LeanClient(loop, life)
            prepared = Prepared(Request(), split(url)[0], life)

            def again(exchange: Exchange) -> None:
                assert exchange.error == 0
                turns.append(exchange.user)
                if len(turns) >= 120:
                    over.set()
                else:
                    exchange.renew()
                    exchange.started_ns = time.monotonic_ns()
                    client.submit(exchange)

            for user in range(6):
                exchange = Exchange(prepared, user, again)
                exchange.started_ns = time.monotonic_ns()
                client.submit(exchange)
            async with asyncio.timeout(5):
                await over.wait()
            await client.close()

    on_uvloop(work)
    assert min(turns.count(user) for user in range(6)) >= 15


def test_a_request_may_time_out_while_it_waits_for_a_connection() -> None:
    report = on_uvloop(
        lambda: play([Script((), "hang")], 3, together=True, connections=1, timeout_s=0.2)
    )
    check(report, 3)
    assert set(report.errors) == {"timeout"}


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

    meter: Meter = on_uvloop(go)
    assert [len(requests) for requests in meter.connections] == expected
    if client == "lean":
        says = {b"connection: close" in request.head for request in chain(*meter.connections)}
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
