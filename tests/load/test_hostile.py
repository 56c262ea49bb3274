"""The lean client against servers that do everything wrong: counted, never crashed, never hung."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.load import client as client_module
from perflab.load.client import LeanClient
from perflab.load.connection import kind_of
from perflab.load.outcome import ERRORS, Exchange
from perflab.load.prepared import Prepared
from perflab.load.targets import Origin, addresses, split
from perflab.load.workload import Request
from tests.load.hostile import OK, End, Hostile, Part, Script, Seen, on_uvloop, play, send

MOVED = b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


def check(seen: Seen, count: int) -> None:
    assert len(seen.outcomes) == count
    assert set(seen.errors) <= set(ERRORS)
    assert seen.complaints == []
    assert seen.left_open == 0


FRAGMENTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200\r\n", b"HTTP/1.1 500 No\r\n", b"HTTP/1.1 204 No\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 302 Found\r\n", b"Content-Length: 2\r\n",
        b"Content-Length: 9\r\n", b"Content-Length: -2\r\n", b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n", b"Server-Timing: a;dur=1\r\n", b"Server-Timing: ;;;=\r\n",
        b"Location: /\r\n", b"Location: http://example.org/\r\n", b"\r\n", b"\r\n\r\n", b"ok",
        b"2\r\nok\r\n0\r\n\r\n", b"ff\r\n", b"\x00", b" folded\r\n", b"X" * 3000, OK, MOVED,
        NO_CONTENT,
    ]
)  # fmt: skip
PARTS = st.lists(st.one_of(FRAGMENTS, st.binary(max_size=20)), max_size=6)
# Two of three end by themselves; the third may leave a request without an answer until its timeout.
SCRIPTS = st.builds(
    lambda parts, end, reads: Script(tuple(Part(part) for part in parts), end, reads),
    PARTS,
    st.sampled_from(["close", "reset", "close", "reset", "keep"]),
    st.sampled_from([True, True, True, False]),
).filter(lambda script: script.reads or script.end != "keep")
REQUESTS = st.builds(
    lambda method, redirects, rows, body: Request(
        method=method,
        path="/$id" if rows else "/",
        redirects=redirects,
        data=tuple({"id": str(number)} for number in range(rows)),
        body=body if method == "POST" else "",
        expect_body="ok" if rows == 3 else "",
        expect_status=0 if rows == 3 else 200,
    ),
    st.sampled_from(["GET", "GET", "HEAD", "POST"]),
    st.integers(0, 2),
    st.sampled_from([0, 0, 2, 3]),
    st.sampled_from(["", "{}"]),
)


@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(SCRIPTS, min_size=1, max_size=4),
    REQUESTS,
    st.sampled_from(["keep_alive", "per_request"]),
    st.booleans(),
    st.booleans(),
)
def test_every_request_to_a_hostile_server_ends_once_with_a_named_class(
    scripts: list[Script], request: Request, connection: str, sticky: bool, together: bool
) -> None:
    seen = on_uvloop(
        lambda: play(
            scripts,
            4,
            together=together,
            request=request,
            connection=connection,
            connections=4 if sticky else 2,
            sticky=sticky,
            timeout_s=0.02,
        )
    )
    check(seen, 4)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SCRIPTS, min_size=1, max_size=4), REQUESTS, st.sampled_from([0, 0.002, 0.005]))
def test_every_request_ends_once_when_the_load_is_aborted(
    scripts: list[Script], request: Request, abort_after_s: float
) -> None:
    seen = on_uvloop(
        lambda: play(
            [*scripts, Script((), "hang")],
            6,
            together=True,
            request=request,
            connections=3,
            abort_after_s=abort_after_s,
            timeout_s=0.1,
        )
    )
    check(seen, 6)


def test_no_socket_is_left_behind() -> None:
    scripts = [
        Script((), "reset"), Script((Part(b"x"),), "close"), Script((Part(MOVED),), "keep"),
        Script((Part(OK[:-1]),), "hang"), Script((Part(OK),), "keep"),
    ]  # fmt: skip

    def files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def work() -> tuple[int, int]:
        async with Hostile(scripts) as url:
            before = files()
            for connections in (1, 3, 20):
                request = Request(redirects=1)
                options = {"connections": connections, "timeout_s": 0.05, "request": request}
                check(await send(url, 20, together=True, **options), 20)
            check(await send(url.replace("http:", "https:"), 3, timeout_s=0.05), 3)
            await asyncio.sleep(0.05)
            return before, files()

    before, after = on_uvloop(work)
    # The server's own ends of hanging connections are its business.
    assert after - before <= 1


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (Script((), "close", reads=False), "closed"),
        (Script((), "close"), "closed"),
        (Script((), "reset"), "reset"),
        (Script((Part(b"HTTP/1.1 20"),), "close"), "truncated"),
        (Script((Part(OK[:-1]),), "close"), "truncated"),
        (Script((Part(OK[:-1]),), "hang"), "timeout"),
        (Script((Part(b"HTTP/1.1 200 OK\r\n", 0.05), Part(b"", 0.05)), "reset"), "reset"),
        (Script((Part(OK[:-1], 0.02), Part(b"", 0.05)), "reset"), "reset"),
        (Script((), "hang"), "timeout"),
        (Script((Part(b"garbage\r\n\r\n"),), "close"), "protocol"),
        (Script((Part(OK + OK),), "close"), "protocol"),
        (Script((Part(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000),), "hang"), "head_too_large"),
        (Script((Part(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),), "keep"), "status"),
        (Script((Part(OK),), "keep"), ""),
        (Script((Part(b"HTTP/1.1 200 OK\r\n\r\nto the end"),), "close"), ""),
    ],
)
def test_each_way_to_fail_has_its_class(script: Script, kind: str) -> None:
    seen = on_uvloop(lambda: play([script], 3, timeout_s=0.3))
    check(seen, 3)
    assert seen.errors == [kind] * 3


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("sticky", [False, True])
def test_a_connection_that_ends_between_requests_is_opened_again(end: End, sticky: bool) -> None:
    async def work() -> tuple[Seen, int]:
        hostile = Hostile([Script((Part(OK),), end)])
        async with hostile as url:
            return await send(url, 3, pause_s=0.01, sticky=sticky), hostile.connections

    seen, connections = on_uvloop(work)
    check(seen, 3)
    assert seen.errors == [""] * 3
    assert connections == 3


def test_bytes_that_nobody_asked_for_are_no_answer_to_the_next_request() -> None:
    script = Script((Part(OK), Part(b"HTTP/1.1 500 No\r\n\r\n", 0.01)), "hang")
    seen = on_uvloop(lambda: play([script], 3, pause_s=0.03))
    assert seen.outcomes == [("", 200, 2)] * 3


def test_an_answer_that_comes_after_the_timeout_is_no_answer_to_the_next_request() -> None:
    late = b"HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n"
    scripts = [Script((Part(late, 0.1),), "keep"), Script((Part(OK, 0.03),), "keep")]
    seen = on_uvloop(lambda: play(scripts, 5, timeout_s=0.08))
    assert seen.errors == ["timeout", "", "", "", ""]


@pytest.mark.parametrize("count", [1, 8])
def test_users_keep_their_connections_and_share_none(count: int) -> None:
    async def work() -> tuple[Seen, int]:
        hostile = Hostile([Script((Part(OK, 0.01),), "keep")])
        async with hostile as url:
            one = await send(url, count, together=True, connections=count, sticky=True)
            return one, hostile.connections

    seen, connections = on_uvloop(work)
    check(seen, count)
    kept = {id(exchange.connection) for exchange in seen.exchanges}
    assert connections == len(kept) == count


def test_what_comes_slowly_counts_from_first_to_last_byte() -> None:
    parts = tuple(Part(OK[place : place + 1], 0.003) for place in range(len(OK)))
    seen = on_uvloop(lambda: play([Script(parts, "keep")], 1))
    exchange = seen.exchanges[0]
    assert seen.outcomes == [("", 200, 2)]
    assert exchange.done_ns - exchange.first_byte_ns > 0.1e9


def test_a_listener_that_ends_before_it_accepts_is_a_reset() -> None:
    async def work() -> Seen:
        held = socket.create_server(("127.0.0.1", 0))
        asyncio.get_running_loop().call_later(0.03, held.close)
        return await send(f"http://127.0.0.1:{held.getsockname()[1]}/", 3, together=True)

    seen = on_uvloop(work)
    check(seen, 3)
    assert seen.errors == ["reset"] * 3


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n"]
)
def test_a_body_without_an_end_is_a_timeout(head: bytes) -> None:
    script = Script((Part(head), *[Part(b"x" * 65_536)] * 1_000_000), "close")
    seen = on_uvloop(lambda: play([script], 1, timeout_s=0.2))
    check(seen, 1)
    assert seen.errors == ["timeout"]
    assert seen.exchanges[0].bytes > 65_536


def test_nobody_listening_is_connect_and_does_not_recurse() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/"
        seen = on_uvloop(lambda: send(url, 3000, together=True, connections=5))
    check(seen, 3000)
    assert set(seen.errors) == {"connect"}


def test_a_full_backlog_is_a_timeout() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(0)
        url = f"http://127.0.0.1:{held.getsockname()[1]}/"
        seen = on_uvloop(lambda: send(url, 4, together=True, timeout_s=0.3))
    check(seen, 4)
    assert set(seen.errors) == {"timeout"}


def test_a_name_that_does_not_exist_is_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    seen = on_uvloop(lambda: send("http://no.such.host/", 2, allowed=("no.such.host",)))
    assert seen.errors == ["dns", "dns"]


def test_a_server_that_does_not_read_a_large_body_is_a_timeout() -> None:
    request = Request(method="POST", body="x" * 8_000_000)
    seen = on_uvloop(
        lambda: play([Script((), "hang", reads=False)], 1, request=request, timeout_s=0.4)
    )
    assert seen.errors == ["timeout"]


def test_an_answer_before_the_request_was_sent_is_taken_and_the_connection_dropped() -> None:
    async def work() -> tuple[Seen, int]:
        hostile = Hostile([Script((Part(OK),), "hang", reads=False)])
        async with hostile as url:
            big = Request(method="POST", body="x" * 5_000_000)
            return await send(url, 4, request=big), hostile.connections

    seen, connections = on_uvloop(work)
    check(seen, 4)
    assert seen.errors == [""] * 4
    # The rest of a body on a connection would be the begin of the next request.
    assert connections == 4


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_refusal_before_the_request_was_sent_is_read_or_counted_as_reset(end: End) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000
    big = Request(method="POST", body="x" * 5_000_000)
    script = Script((Part(refusal), Part(b"", 0.05)), end, reads=False)
    seen = on_uvloop(lambda: play([script], 3, request=big))
    check(seen, 3)
    assert seen.outcomes == [("status", 413, 200_000)] * 3


def test_a_large_body_arrives_whole() -> None:
    async def work() -> tuple[Seen, bytes]:
        hostile = Hostile([Script((Part(OK),), "keep")])
        async with hostile as url:
            body = "".join(str(number % 10) for number in range(5_000_000))
            seen = await send(url, 1, request=Request(method="POST", body=body))
            return seen, hostile.requests[0]

    seen, request = on_uvloop(work)
    assert seen.errors == [""]
    assert request.endswith(b"".join(b"%d" % (number % 10) for number in range(5_000_000)))


@pytest.mark.parametrize("connection", ["keep_alive", "per_request"])
def test_requests_above_the_cap_wait_their_turn(connection: str) -> None:
    script = Script((Part(OK, 0.02),), "keep")
    seen = on_uvloop(lambda: play([script], 6, together=True, connections=1, connection=connection))
    check(seen, 6)
    assert seen.errors == [""] * 6
    sent = [exchange.sent_ns for exchange in seen.exchanges]
    assert sorted(sent) == sent
    assert sent[-1] - sent[0] > 90_000_000
    assert seen.capped == 5


def test_only_what_the_cap_made_wait_is_counted_as_capped() -> None:
    script = Script((Part(OK, 0.05),), "keep")
    assert on_uvloop(lambda: play([script], 100, together=True, connections=100)).capped == 0
    assert on_uvloop(lambda: play([script], 100, together=True, connections=60)).capped == 40


@pytest.mark.parametrize("connection", ["keep_alive", "per_request"])
def test_users_who_come_back_at_once_leave_connections_to_those_who_wait(connection: str) -> None:
    turns: list[int] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        async with Hostile([Script((Part(OK),), "keep")]) as url:
            client = LeanClient(loop, connection, connections=2)
            prepared = Prepared(Request(), split(url)[0], connection)

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
    seen = on_uvloop(
        lambda: play([Script((), "hang")], 3, together=True, connections=1, timeout_s=0.2)
    )
    check(seen, 3)
    assert set(seen.errors) == {"timeout"}


def moved(to: bytes, status: int = 302, more: bytes = b"") -> bytes:
    location = b"Location: " + to + b"\r\n" if to else b""
    return b"HTTP/1.1 %d Moved\r\n%s%sContent-Length: 0\r\n\r\n" % (status, location, more)


def home(**routes: bytes) -> Hostile:
    """Serve routes on connections that are kept; what is no route is fine."""
    found = {b"/" + name.encode(): answer for name, answer in routes.items()}
    return Hostile([Script((Part(OK),), "keep", routes=found)])


async def follow(hostile: Hostile, request: Request, count: int = 1, **options: Any) -> Seen:
    async with hostile as url:
        return await send(url, count, request=request, **options)


def test_a_redirect_is_an_answer_like_others_unless_it_is_to_be_followed() -> None:
    hostile = home(a=moved(b"/b"))
    assert on_uvloop(lambda: follow(hostile, Request(path="/a"))).errors == ["status"]
    found = on_uvloop(lambda: follow(hostile, Request(path="/a", expect_status=302)))
    assert found.outcomes == [("", 302, 0)]
    followed = on_uvloop(lambda: follow(hostile, Request(path="/a", redirects=1)))
    assert followed.outcomes == [("", 200, 2)]


@pytest.mark.parametrize("options", [{}, {"sticky": True}, {"connection": "per_request"}])
def test_the_same_redirect_is_followed_again_and_again(options: dict[str, Any]) -> None:
    hostile = home(a=moved(b"/b"), b=moved(b"c?d=e"))
    seen = on_uvloop(lambda: follow(hostile, Request(path="/a", redirects=2), 5, **options))
    check(seen, 5)
    assert seen.outcomes == [("", 200, 2)] * 5
    paths = [request.split(b" ")[1] for request in hostile.requests]
    assert paths == [b"/a", b"/b", b"/c?d=e"] * 5
    assert hostile.connections == (15 if "connection" in options else 1)
    assert seen.exchanges[0].prepared.request.path == "/a"


def test_a_redirect_is_followed_while_others_wait_for_its_connection() -> None:
    hostile = home(a=moved(b"/b"))
    request = Request(path="/a", redirects=1)
    seen = on_uvloop(lambda: follow(hostile, request, 8, together=True, connections=1))
    check(seen, 8)
    assert seen.outcomes == [("", 200, 2)] * 8
    assert hostile.connections == 1


def test_a_loop_of_redirects_ends_at_the_limit() -> None:
    hostile = home(a=moved(b"/a"))
    seen = on_uvloop(lambda: follow(hostile, Request(path="/a", redirects=3), 2))
    check(seen, 2)
    assert seen.errors == ["redirect"] * 2
    assert len(hostile.requests) == 2 * 4


@pytest.mark.parametrize(
    "location",
    [
        b"http://example.org/", b"//example.org/", b"https://example.org/", b"HTTP://EXAMPLE.ORG",
        b"http://127.0.0.1@example.org/", b"http://example.org@127.0.0.1/",
        b"http://127.0.0.1.example.org/", b"http://localhost.example.org/",
        b"http://127.0.0.1\t.example.org/", b"http:\\\\example.org", b"\\\\example.org\\",
        b"http://2130706433/", b"http://0x7f.1/", b"http://0177.0.0.1/", b"http://127.1/",
        b"http://0.0.0.0/", b"http://[::]/", b"http://[::1", b"http://:80/",
        b"http://127.0.0.1:0/", b"http://127.0.0.1:99999/", b"http://127.0.0.1:x/",
        b"ftp://127.0.0.1/", b"file:///etc/passwd", b"javascript:alert(1)", b"ws://127.0.0.1/",
        b"/a b", b"/\xc3\xa9", b"",
    ],
)  # fmt: skip
def test_a_redirect_off_the_list_or_to_nowhere_is_refused_before_anything_is_sent(
    location: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Origin] = []

    def resolve(origin: Origin) -> Any:
        asked.append(origin)
        return addresses(origin)

    monkeypatch.setattr(client_module, "addresses", resolve)
    hostile = home(a=moved(location))
    seen = on_uvloop(lambda: follow(hostile, Request(path="/a", redirects=3), 2))
    check(seen, 2)
    assert seen.errors == ["redirect"] * 2
    assert len(hostile.requests) == 2
    assert len(asked) == 1


@pytest.mark.parametrize(
    "location", [b"http:///", b"http:b", b"?a", b"//LOCALHOST:%d/", b";", b"#"]
)
def test_a_redirect_that_is_relative_in_an_odd_way_stays_at_home(location: bytes) -> None:
    async def work() -> Seen:
        async with home() as other:
            at = location % split(other)[0].port if b"%d" in location else location
            return await follow(home(a=moved(at)), Request(path="/a", redirects=1))

    seen = on_uvloop(work)
    check(seen, 1)
    assert seen.errors[0] in ("", "redirect")


def test_see_other_turns_a_post_into_a_get_without_what_described_the_body() -> None:
    hostile = home(a=moved(b"/b", 303))
    headers = {"Content-Type": "text/plain", "Content-Length": "2", "X-Kept": "1"}
    request = Request(method="POST", path="/a", body="{}", headers=headers, redirects=1)
    assert on_uvloop(lambda: follow(hostile, request)).errors == [""]
    assert hostile.requests[1].startswith(b"GET /b ")
    assert b"X-Kept: 1" in hostile.requests[1]
    assert b"content-" not in hostile.requests[1].lower()


@pytest.mark.parametrize("status", [307, 308])
def test_temporary_and_permanent_redirects_repeat_the_row_that_was_sent(status: int) -> None:
    hostile = home(a1=moved(b"/b", status), a2=moved(b"/c", status))
    rows = ({"n": "1"}, {"n": "2"})
    request = Request(method="POST", path="/a$n", body="row $n", data=rows, redirects=1)
    assert on_uvloop(lambda: follow(hostile, request, 4)).errors == [""] * 4
    found = [(each.split(b" ")[1], each[-5:]) for each in hostile.requests]
    first = [(b"/a1", b"row 1"), (b"/b", b"row 1")]
    second = [(b"/a2", b"row 2"), (b"/c", b"row 2")]
    assert found == [*first, *second] * 2


async def across(headers: dict[str, str], count: int = 1, **options: Any) -> tuple[Seen, Hostile]:
    """Follow a redirect to another origin."""
    other = home()
    async with other as away:
        hostile = home(a=moved(away.encode()))
        request = Request(path="/a", headers=headers, redirects=1)
        return await follow(hostile, request, count, **options), other


def test_secrets_and_the_name_of_the_host_stay_with_their_origin() -> None:
    headers = {"Authorization": "secret", "cookie": "secret", "Host": "secret", "X-Kept": "1"}
    seen, other = on_uvloop(lambda: across(headers))
    assert seen.errors == [""]
    assert b"X-Kept: 1" in other.requests[0]
    assert b"Host: 127.0.0.1:" in other.requests[0]
    assert b"secret" not in other.requests[0]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("connection", ["keep_alive", "per_request"])
def test_a_redirect_to_another_origin_does_not_wait_for_a_connection_that_idles(
    together: bool, connection: str
) -> None:
    options = {"connections": 1, "together": together, "connection": connection}
    seen, _ = on_uvloop(lambda: across({}, 6, **options))
    check(seen, 6)
    assert seen.errors == [""] * 6


def test_a_redirect_judges_the_last_answer_only() -> None:
    hostile = home(a=moved(b"/b"))
    request = Request(path="/a", redirects=1, expect_status=0, expect_body="ok", expect_bytes=2)
    assert on_uvloop(lambda: follow(hostile, request)).outcomes == [("", 200, 2)]


def test_a_chain_of_redirects_is_one_request_from_its_first_sending_on() -> None:
    first = Script((Part(moved(b"/next"), 0.1),), "close")
    scripts = [first, Script((Part(OK),), "keep")]
    seen = on_uvloop(lambda: play(scripts, 1, request=Request(redirects=1)))
    exchange = seen.exchanges[0]
    assert exchange.done_ns - exchange.sent_ns > 0.09e9
    assert exchange.prepared.request.path == "/"


def test_a_chain_of_redirects_has_one_timeout() -> None:
    script = Script((Part(moved(b"/next"), 0.06),), "keep")
    seen = on_uvloop(lambda: play([script], 1, request=Request(redirects=20), timeout_s=0.2))
    exchange = seen.exchanges[0]
    assert seen.errors == ["timeout"]
    assert exchange.done_ns - exchange.started_ns < 0.3e9


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.EADDRNOTAVAIL, ""), "ports"),
        (OSError(errno.EMFILE, ""), "files"),
        (OSError(errno.ENFILE, ""), "files"),
        (OSError(errno.ETIMEDOUT, ""), "timeout"),
        (OSError(errno.ECONNREFUSED, ""), "connect"),
        (OSError(errno.ENETUNREACH, ""), "connect"),
        (socket.gaierror(socket.EAI_NONAME, ""), "dns"),
        (ssl.SSLError("x"), "tls"),
        (ssl.SSLCertVerificationError("x"), "tls"),
        (ValueError("x"), "connect"),
    ],
)
def test_what_the_system_refuses_has_its_class(error: OSError | ValueError, kind: str) -> None:
    assert ERRORS[kind_of(error, "connect")] == kind


def test_a_process_without_files_left_says_so_and_recovers() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        kinds: list[str] = []
        async with Hostile([Script((Part(OK),), "keep")]) as url:
            client = LeanClient(loop, connections=10)
            prepared = Prepared(Request(), split(url)[0])
            exchange = Exchange(prepared, 0, lambda done: kinds.append(ERRORS[done.error]))
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            used = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
            spare = [os.dup(0) for _ in range(used)]
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1, limits[1]))
            try:
                exchange.started_ns = time.monotonic_ns()
                client.submit(exchange)
                await asyncio.sleep(0.02)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                for file in spare:
                    os.close(file)
            exchange.started_ns = time.monotonic_ns()
            client.submit(exchange)
            await asyncio.sleep(0.05)
            await client.close()
        return kinds

    kinds = on_uvloop(work)
    assert kinds == ["files", ""]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return key, cert


async def over_tls(
    certificate: tuple[Path, Path],
    count: int,
    scheme: str = "https",
    host: str = "localhost",
    **client: Any,
) -> Seen:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    body = b"b" * 300_000

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(answer, host, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        return await send(f"{scheme}://{host}:{port}/", count, **client)
    finally:
        server.close()


def test_tls_works_with_a_trusted_certificate_and_is_refused_without(
    certificate: tuple[Path, Path],
) -> None:
    trusted = on_uvloop(lambda: over_tls(certificate, 5, ca_file=str(certificate[1])))
    assert trusted.outcomes == [("", 200, 300_000)] * 5
    assert on_uvloop(lambda: over_tls(certificate, 2)).errors == ["tls", "tls"]
    assert on_uvloop(lambda: over_tls(certificate, 2, verify_tls=False)).errors == ["", ""]


def test_a_plain_server_on_https_is_a_tls_error() -> None:
    async def work() -> Seen:
        async with Hostile([Script((Part(OK),), "close", reads=False)]) as url:
            return await send(url.replace("http:", "https:"), 1)

    assert on_uvloop(work).errors == ["tls"]


def test_a_tls_server_whose_backlog_is_full_is_a_timeout(certificate: tuple[Path, Path]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(0)
        url = f"https://127.0.0.1:{held.getsockname()[1]}/"
        options = {"together": True, "timeout_s": 0.3, "ca_file": str(certificate[1])}
        seen = on_uvloop(lambda: send(url, 4, **options))
    check(seen, 4)
    assert set(seen.errors) == {"timeout"}


def test_tls_to_a_server_that_is_slow_to_connect_works(certificate: tuple[Path, Path]) -> None:
    # Beyond loopback connect returns before there is a connection: so does it here, until the
    # kernel tries again after a second, because the backlog is full at first.
    async def work() -> Seen:
        loop = asyncio.get_running_loop()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate[1], certificate[0])
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen(0)
            where = listening.getsockname()
            filling = [socket.socket() for _ in range(2)]
            for one in filling:
                one.setblocking(False)
                one.connect_ex(where)

            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    await reader.readuntil(b"\r\n\r\n")
                    writer.write(OK)
                writer.close()

            async def accept() -> asyncio.Server:
                await asyncio.sleep(0.1)
                for one in filling:
                    one.close()
                listening.setblocking(False)
                return await asyncio.start_server(answer, sock=listening.dup(), ssl=context)

            accepting = loop.create_task(accept())
            try:
                options = {"timeout_s": 4.0, "ca_file": str(certificate[1])}
                return await send(f"https://127.0.0.1:{where[1]}/", 1, **options)
            finally:
                (await accepting).close()

    assert on_uvloop(work).errors == [""]


def test_certificates_that_cannot_be_read_or_name_another_host_are_tls_errors(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for path in (tmp_path / "missing.pem", empty):
        seen = on_uvloop(lambda path=path: over_tls(certificate, 2, ca_file=str(path)))
        check(seen, 2)
        assert seen.errors == ["tls", "tls"]
    options = {"ca_file": str(certificate[1]), "host": "127.0.0.2"}
    assert on_uvloop(lambda: over_tls(certificate, 1, **options)).errors == ["tls"]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_server_that_ends_in_the_handshake_is_a_tls_error(end: End) -> None:
    async def work() -> Seen:
        async with Hostile([Script((), end, reads=False)]) as url:
            return await send(url.replace("http:", "https:"), 2)

    seen = on_uvloop(work)
    check(seen, 2)
    assert seen.errors == ["tls", "tls"]


def test_a_server_that_is_silent_in_the_handshake_is_a_timeout() -> None:
    async def work() -> Seen:
        async with Hostile([Script((), "hang", reads=False)]) as url:
            return await send(url.replace("http:", "https:"), 2, timeout_s=0.1)

    seen = on_uvloop(work)
    check(seen, 2)
    assert seen.errors == ["timeout", "timeout"]


def test_a_tls_server_on_http_is_a_protocol_error(certificate: tuple[Path, Path]) -> None:
    seen = on_uvloop(lambda: over_tls(certificate, 2, scheme="http", timeout_s=0.3))
    check(seen, 2)
    assert set(seen.errors) <= {"protocol", "closed", "reset"}
