"""Cookies: none by default; a jar for each user where asked, by domain, path and time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from perflab.errors import ParameterError
from perflab.load.cookie_client import MOST_COOKIES, CookieClient, UserCookies, with_cookies
from perflab.load.exchange import Exchange
from perflab.load.options import LoadOptions
from perflab.load.outcome import ERRORS
from perflab.load.prepared import Prepared
from perflab.load.targets import split
from perflab.load.workload import Request

Answer = Callable[[str], bytes]


def test_cookies_go_back_to_their_domain_and_path_and_no_longer_than_they_live() -> None:
    own = UserCookies()
    own.take("http://shop.test/a/b", ["all=1; Path=/", "here=2; Path=/a", "gone=3; Max-Age=0"])
    own.take(
        "https://shop.test/", ["safe=4; Secure", "wide=5; Domain=shop.test", "x=1; Domain=b.test"]
    )
    assert set(own.line("http://shop.test/a/c").split("; ")) == {"all=1", "here=2", "wide=5"}
    assert set(own.line("http://www.shop.test/").split("; ")) == {"wide=5"}
    assert "safe=4" in own.line("https://shop.test/")
    assert own.line("http://other.test/") == ""
    own.take("http://shop.test/", ["all=; Max-Age=0; Path=/"])
    assert "all" not in own.line("http://shop.test/")


def test_a_server_cannot_fill_the_memory_with_cookies() -> None:
    own = UserCookies()
    for number in range(MOST_COOKIES + 50):
        own.take("http://127.0.0.1/", [f"c{number}=1"])
    assert len(own) == MOST_COOKIES


def test_cookies_join_those_of_the_request_and_never_touch_its_body() -> None:
    own = UserCookies()
    own.take("http://127.0.0.1/", ["a=1", "b=2"])
    plain = b"POST / HTTP/1.1\r\nHost: x\r\n\r\nCookie: in the body\r\n\r\n"
    assert with_cookies(plain, own, "http://127.0.0.1/").startswith(
        b"POST / HTTP/1.1\r\nHost: x\r\nCookie: a=1; b=2\r\n\r\nCookie: in the body"
    )
    given = b"GET / HTTP/1.1\r\nCookie: b=9\r\nHost: x\r\n\r\n"
    assert b"\r\nCookie: b=9; a=1\r\nHost" in with_cookies(given, own, "http://127.0.0.1/")


async def _seen(
    answer: Answer, requests: list[tuple[int, Request]], one: bool = False
) -> tuple[list[str], list[str]]:
    """Send requests of users in turn; return the heads that a real server got, and outcomes."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                heads.append(head)
                writer.write(answer(head))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    origin, _ = split(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    client = CookieClient(asyncio.get_running_loop())
    outcomes: list[str] = []
    first = Prepared(requests[0][1], origin)
    for user, request in requests:
        over = asyncio.Event()
        prepared = first if one else Prepared(request, origin)
        exchange = Exchange(prepared, user, lambda _, over=over: over.set())  # type: ignore[misc]
        exchange.planned_ns = exchange.started_ns = time.monotonic_ns()
        client.submit(exchange)
        await asyncio.wait_for(over.wait(), 20)
        outcomes.append(ERRORS[exchange.error])
    await client.close()
    server.close()
    return heads, outcomes


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return uvloop.run(work)


def answered(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Content-Length: 0", *lines, "", ""]).encode()


def test_each_user_has_its_own_cookies() -> None:
    numbers = iter(range(10))

    def answer(head: str) -> bytes:
        return answered() if "Cookie" in head else answered(f"Set-Cookie: s={next(numbers)}")

    plain = Request()
    heads, outcomes = run(_seen(answer, [(0, plain), (1, plain), (0, plain), (1, plain)]))
    assert outcomes == [""] * 4
    found = [head.partition("Cookie: ")[2].partition("\r")[0] for head in heads]
    assert found == ["", "", "s=0", "s=1"]


def test_a_cookie_of_a_redirect_goes_with_the_request_that_follows_it() -> None:
    def answer(head: str) -> bytes:
        if "POST /login" in head:
            return answered("Set-Cookie: s=7; Path=/", "Location: /home", status="302 Found")
        return answered()

    login = Request(method="POST", path="/login", redirects=2)
    heads, outcomes = run(_seen(answer, [(0, login)]))
    assert outcomes == [""]
    assert heads[1].startswith("GET /home ")
    assert "\r\nCookie: s=7\r\n" in heads[1]


def test_options_for_cookies_are_checked_before_the_start() -> None:
    def made(**words: Any) -> Any:
        return LoadOptions.of({"url": "http://127.0.0.1:9/", **words}).workload()

    assert not made(users=1).cookies
    assert made(users=1, cookies=True).cookies
    for words, told in (
        ({"rate": 5, "cookies": True}, "cookies are kept by users"),
        ({"users": 1, "cookies": True, "http2": True}, "keeps no cookies"),
    ):
        with pytest.raises(ParameterError, match=told):
            made(**words)
