"""HTTP/2: the server is asked before the load, and the load is sent or refused."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import LoadError, ParameterError
from perflab.load import once
from perflab.load.clients.client import Client, make_client
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.http2_client import ask_for_http2
from perflab.load.clients.library_client import out_of_reach
from perflab.load.clients.outcome import ERRORS
from perflab.load.clients.targets import split
from perflab.load.options import LoadOptions
from perflab.load.workload import ClosedLoop, Request, Scripted, Workload
from perflab.stacks.plan import Node, StackPlan
from tests.load.clients.hostile import on_uvloop
from tests.load.clients.http2_peer import ANSWER_S, Seen, peer
from tests.load.meter import Meter, closed_loop
from tests.load.processes import a_certificate
from tests.stacks.asking import started

OVER_HTTP2 = Workload(request=Request(), arrivals=ClosedLoop(users=2, requests=9), client="http2")
REQUESTS = 200


@pytest.fixture
def echo() -> Iterator[int]:
    """Run a server that speaks HTTP/2 with prior knowledge; yield its port.

    Its bodies are larger than the window of a stream and of a connection (65,535 bytes each).
    """
    node = Node(name="echo", service="echo", settings={"body_bytes": 300_000})
    with started("process", {"it": StackPlan(nodes=(node,))}) as residents:
        yield residents.instance("it", "echo").launch.port


def test_every_answer_comes_over_http2_and_all_share_a_connection(echo: int) -> None:
    shown = once.send(
        f"http://127.0.0.1:{echo}/",
        workers=1,
        users=8,
        requests=80,
        http2=True,
        expect_bytes=300_000,
    )
    assert (shown.requests, shown.errors) == (80, 0)
    assert shown.connections_opened <= 1


@dataclass
class Sent:
    """What became of the requests of eight users, each of which had a body of its own."""

    client: Client
    errors: list[str] = field(default_factory=list)
    waits_ms: list[float] = field(default_factory=list)
    connected: int = 0

    def record(self, exchange: Exchange) -> None:
        self.errors.append(ERRORS[exchange.error])
        self.waits_ms.append((exchange.sent_ns - exchange.started_ns) / 1e6)
        self.connected += exchange.connect_ns > 0


def sent_to(manner: str, size: int = 8, timeout_s: float = 10) -> tuple[Sent, Seen]:
    """Let the users send their requests to a peer; return their outcome, and what it saw."""
    bodies = tuple(f"{number:08}".ljust(size) for number in range(REQUESTS))
    request = Request(method="POST", body=bodies)
    work = OVER_HTTP2.model_copy(update={"request": request, "timeout_s": timeout_s})

    async def send() -> tuple[Sent, Seen]:
        async with peer(manner) as (url, seen):
            prepared = Prepared(request, split(url)[0])
            sent = Sent(make_client(work, prepared, 100))
            await closed_loop(sent.client, prepared, 8, REQUESTS, sent.record)
            return sent, seen

    return on_uvloop(send)


@pytest.mark.parametrize(("manner", "resent"), [("graceful", 0), ("below", 1), ("refused", 3)])
@pytest.mark.promise
def test_what_a_server_has_not_begun_goes_out_again_and_is_answered_once(
    manner: str, resent: int
) -> None:
    sent, seen = sent_to(manner)
    assert sent.errors == [""] * REQUESTS
    assert sorted(seen.answered.values()) == sorted(seen.begun().values()) == [1] * REQUESTS
    assert sent.client.resent == len(seen.order) - REQUESTS
    assert sent.client.resent >= resent
    assert sent.connected == len(seen.peers)
    assert (len(seen.peers) > 1) == (manner != "refused")


@pytest.mark.promise
def test_an_answer_of_another_length_than_it_says_fails_alone() -> None:
    sent, seen = sent_to("miscounted")
    assert Counter(sent.errors) == {"": REQUESTS - 4, "protocol": 4}
    assert len(seen.peers) == 1


def test_where_a_server_takes_one_at_a_time_the_others_wait_in_order_and_none_fails() -> None:
    sent, seen = sent_to("one")
    assert sent.errors == [""] * REQUESTS
    assert (seen.most_at_once, len(seen.peers)) == (1, 1)
    assert seen.order == sorted(seen.order)
    # A user's request waits for those of the seven others; a timer may end a little early.
    assert statistics.median(sent.waits_ms) > 5 * 1e3 * ANSWER_S
    assert sent.client.capped > 0.9 * REQUESTS


def test_a_request_that_is_given_up_makes_room_for_the_next() -> None:
    sent, seen = sent_to("silent", timeout_s=0.5)
    assert sorted(sent.errors) == [""] * (REQUESTS - 8) + ["timeout"] * 8
    # Eight time out together; one that gets the room of another just before is given up as well.
    assert 1 <= seen.given_up <= 8


def test_an_end_that_is_an_error_fails_what_was_not_begun_with_its_name() -> None:
    sent, _ = sent_to("angry")
    assert set(sent.errors) == {"", "protocol"}
    texts = [text for kind, _, text in sent.client.first_errors.texts() if kind == "protocol"]
    assert texts == ["the server ended the connection: ENHANCE_YOUR_CALM"]


def test_a_body_larger_than_the_servers_windows_arrives_whole() -> None:
    sent, seen = sent_to("graceful", size=200_000)
    assert sent.errors == [""] * REQUESTS
    assert set(seen.sizes) == {200_000}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_of_http_1_is_refused_before_the_load(tmp_path: Path, scheme: str) -> None:
    tls, certificate = a_certificate(tmp_path)
    tls.set_alpn_protocols(["http/1.1"])
    meter = Meter(tls if scheme == "https" else None)
    trusting = OVER_HTTP2.model_copy(update={"ca_file": str(certificate), "timeout_s": 1.0})

    async def ask() -> None:
        async with meter as url:
            await asyncio.to_thread(ask_for_http2, url, trusting)

    with pytest.raises(LoadError, match=r"does not answer over HTTP/2.*no load was sent"):
        on_uvloop(ask)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"client": "http2", "connections": "per_request"}, "share one connection"),
        ({"client": "http2", "connections": 4}, "share one connection"),
        ({"request": {"stream": "sse"}}, "the httpx client records no chunks"),
        ({"request": {"progress_points": 8}}, "the httpx client records no progress_points"),
        ({"request": {"redirects": 1}}, "the httpx client follows no redirects"),
        ({"arrivals": Scripted(script="a:B", users=1, duration_s=1)}, "lets no scripted users act"),
    ],
)
def test_features_of_the_lean_client_alone_are_refused_before_the_start(
    words: dict[str, Any], told: str
) -> None:
    workload = Workload.model_validate(
        {"request": {}, "arrivals": OVER_HTTP2.arrivals, "client": "httpx", **words}
    )
    (problem,) = out_of_reach(workload)
    assert told in problem


def test_the_command_refuses_what_its_client_cannot_do() -> None:
    words = {"url": "http://127.0.0.1:9/", "users": 1, "requests": 1, "http2": True}
    with pytest.raises(ParameterError, match="records no chunks"):
        LoadOptions.of({**words, "stream": "sse"}).workload()
