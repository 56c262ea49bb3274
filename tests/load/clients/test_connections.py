"""Connections: how long they live, which requests wait for one, and redirects that are followed."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import Any

import pytest
from pydantic import ValidationError

from perflab.load.clients import targets
from perflab.load.clients.client import LeanClient
from perflab.load.clients.exchange import Prepared
from perflab.load.clients.targets import Origin, addresses, split
from perflab.load.workload import ClosedLoop, Connections, Request, Reuse, Workload
from tests.load.clients.hostile import (
    OK,
    ClientReport,
    Hostile,
    Part,
    Script,
    check,
    on_uvloop,
    play,
    sent_to,
)
from tests.load.meter import Meter, closed_loop, drive


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
    outcomes: list[tuple[int, int]] = []

    async def work() -> None:
        async with Hostile([Script((Part(OK),), "keep")]) as url:
            life = Connections(reuse=connection, most=2)
            client = LeanClient(asyncio.get_running_loop(), life)
            prepared = Prepared(Request(), split(url)[0], life)
            await closed_loop(
                client, prepared, 6, 120,
                lambda exchange: outcomes.append((exchange.user, exchange.error)),
            )  # fmt: skip

    on_uvloop(work)
    turns, errors = zip(*outcomes, strict=True)
    assert set(errors) == {0}
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
        says = {b"connection: close" in request.lower() for request in chain(*meter.connections)}
        assert says == {reuse == "per_request"}


def moved(to: bytes) -> bytes:
    location = b"Location: " + to + b"\r\n" if to else b""
    return b"HTTP/1.1 302 Moved\r\n%sContent-Length: 0\r\n\r\n" % location


def home(**routes: bytes) -> Hostile:
    """Serve routes on connections that stay open; other paths get a success."""
    by_path = {b"/" + name.encode(): answer for name, answer in routes.items()}
    return Hostile([Script((Part(OK),), "keep", routes=by_path)])


def test_a_redirect_is_an_answer_like_others_unless_it_is_to_be_followed() -> None:
    hostile = home(a=moved(b"/b"))
    assert on_uvloop(lambda: sent_to(hostile, request=Request(path="/a"))).errors == ["status"]
    unfollowed = on_uvloop(lambda: sent_to(hostile, request=Request(path="/a", expect_status=302)))
    assert unfollowed.outcomes == [("", 302, 0)]
    followed = on_uvloop(lambda: sent_to(hostile, request=Request(path="/a", redirects=1)))
    assert followed.outcomes == [("", 200, 2)]


@pytest.mark.parametrize("options", [{}, {"sticky": True}, {"connection": "per_request"}])
def test_the_same_redirect_is_followed_again_and_again(options: dict[str, Any]) -> None:
    hostile = home(a=moved(b"/b"), b=moved(b"c?d=e"))
    request = Request(path="/a", redirects=2)
    report = on_uvloop(lambda: sent_to(hostile, 5, request=request, **options))
    check(report, 5)
    assert report.outcomes == [("", 200, 2)] * 5
    paths = [sent.split(b" ")[1] for sent in hostile.requests]
    assert paths == [b"/a", b"/b", b"/c?d=e"] * 5
    assert hostile.connections == (15 if "connection" in options else 1)
    assert report.exchanges[0].prepared.request.path == "/a"


def test_a_loop_of_redirects_ends_at_the_limit() -> None:
    hostile = home(a=moved(b"/a"))
    report = on_uvloop(lambda: sent_to(hostile, 2, request=Request(path="/a", redirects=3)))
    check(report, 2)
    assert report.errors == ["redirect"] * 2
    assert len(hostile.requests) == 2 * 4


@pytest.mark.parametrize(
    "location",
    [
        b"http://example.org/", b"//example.org/", b"http://127.0.0.1@example.org/",
        b"http:\\\\example.org", b"http://[::1", b"ws://127.0.0.1/", b"",
    ],
)  # fmt: skip
def test_a_redirect_off_the_list_or_to_nowhere_is_refused_before_anything_is_sent(
    location: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved: list[Origin] = []

    def resolve(origin: Origin) -> Any:
        resolved.append(origin)
        return addresses(origin)

    monkeypatch.setattr(targets, "addresses", resolve)
    hostile = home(a=moved(location))
    report = on_uvloop(lambda: sent_to(hostile, 2, request=Request(path="/a", redirects=3)))
    check(report, 2)
    assert report.errors == ["redirect"] * 2
    assert len(hostile.requests) == 2
    assert len(resolved) == 1


def test_a_request_with_a_body_follows_no_redirect() -> None:
    with pytest.raises(ValidationError, match="only a GET follows"):
        Request(redirects=1, method="POST")


async def across(
    headers: dict[str, str], count: int = 1, **options: Any
) -> tuple[ClientReport, Hostile]:
    """Follow a redirect to another origin."""
    other = home()
    async with other as away:
        hostile = home(a=moved(away.encode()))
        request = Request(path="/a", headers=headers, redirects=1)
        return await sent_to(hostile, count, request=request, **options), other


def test_secrets_and_the_name_of_the_host_stay_with_their_origin() -> None:
    headers = {"Authorization": "secret", "cookie": "secret", "Host": "secret", "X-Kept": "1"}
    report, other = on_uvloop(lambda: across(headers))
    assert report.errors == [""]
    assert b"X-Kept: 1" in other.requests[0]
    assert b"Host: 127.0.0.1:" in other.requests[0]
    assert b"secret" not in other.requests[0]


@pytest.mark.parametrize("together", [False, True])
def test_a_redirect_to_another_origin_does_not_wait_for_a_connection_that_idles(
    together: bool,
) -> None:
    report, _ = on_uvloop(lambda: across({}, 6, connections=1, together=together))
    check(report, 6)
    assert report.errors == [""] * 6


def test_a_chain_of_redirects_has_one_timeout() -> None:
    script = Script((Part(moved(b"/next"), 0.06),), "keep")
    report = on_uvloop(lambda: play([script], 1, request=Request(redirects=20), timeout_s=0.2))
    exchange = report.exchanges[0]
    assert report.errors == ["timeout"]
    # Each of the 21 hops alone would be in time, at 60 ms.
    assert exchange.done_ns - exchange.started_ns < 1.2e9
