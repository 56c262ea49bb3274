"""The lean client against servers that do everything wrong: counted, never crashed, never hung."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.load.connection import kind_of
from perflab.load.outcome import CODES, ERRORS
from perflab.load.workload import Request
from tests.load.hostile import OK, Hostile, Part, Script, Seen, on_uvloop, play, send


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
        b"2\r\nok\r\n0\r\n\r\n", b"ff\r\n", b"\x00", b" folded\r\n", b"X" * 3000, OK,
    ]
)  # fmt: skip
PARTS = st.lists(st.one_of(FRAGMENTS, st.binary(max_size=20)), max_size=6)
SCRIPTS = st.builds(
    lambda parts, end: Script(tuple(Part(part) for part in parts), end),
    PARTS,
    st.sampled_from(["close", "reset", "keep"]),
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(SCRIPTS, min_size=1, max_size=4),
    st.sampled_from(["keep_alive", "per_request"]),
    st.integers(0, 2),
)
def test_every_request_to_a_hostile_server_ends_once_with_a_named_class(
    scripts: list[Script], connection: str, redirects: int
) -> None:
    seen = on_uvloop(
        lambda: play(
            scripts,
            4,
            together=True,
            request=Request(redirects=redirects),
            connection=connection,
            connections=3,
            timeout_s=0.08,
        )
    )
    check(seen, 4)


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


def test_a_connection_closed_between_requests_is_opened_again() -> None:
    async def work() -> Seen:
        async with Hostile([Script((Part(OK),), "close")]) as url:
            first = await send(url, 1)
            assert first.errors == [""]
            return await send(url, 1)

    assert on_uvloop(work).errors == [""]


def test_what_comes_slowly_counts_from_first_to_last_byte() -> None:
    parts = tuple(Part(OK[place : place + 1], 0.003) for place in range(len(OK)))
    seen = on_uvloop(lambda: play([Script(parts, "keep")], 1))
    exchange = seen.exchanges[0]
    assert seen.outcomes == [("", 200, 2)]
    assert exchange.done_ns - exchange.first_byte_ns > 0.1e9


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
            big = Request(method="POST", body="x" * 8_000_000)
            return await send(url, 2, request=big), hostile.connections

    seen, connections = on_uvloop(work)
    assert seen.errors == ["", ""]
    assert connections == 2


def test_requests_above_the_cap_wait_their_turn() -> None:
    script = Script((Part(OK, 0.05),), "keep")
    seen = on_uvloop(lambda: play([script], 6, together=True, connections=2))
    check(seen, 6)
    assert seen.errors == [""] * 6
    waits = [exchange.sent_ns - exchange.started_ns for exchange in seen.exchanges]
    assert [round(wait / 50e6) for wait in waits] == [0, 0, 1, 1, 2, 2]


def test_a_request_may_time_out_while_it_waits_for_a_connection() -> None:
    seen = on_uvloop(
        lambda: play([Script((), "hang")], 3, together=True, connections=1, timeout_s=0.2)
    )
    check(seen, 3)
    assert set(seen.errors) == {"timeout"}


def redirect(where: str, more: str = "") -> Part:
    head = f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n{more}\r\n"
    return Part(head.encode())


def test_redirects_are_followed_only_when_asked_and_never_off_the_list() -> None:
    away = Script((redirect("http://example.org/"),), "keep")
    home = Script((redirect("/next", "Connection: close\r\n"),), "close")
    fine = Script((Part(OK),), "keep")
    assert on_uvloop(lambda: play([home, fine])).errors == ["status"]
    assert on_uvloop(lambda: play([away], request=Request(redirects=3))).errors == ["redirect"]
    assert on_uvloop(lambda: play([home], request=Request(redirects=3))).errors == ["redirect"]
    seen = on_uvloop(lambda: play([home, fine], 1, request=Request(redirects=3)))
    assert seen.outcomes == [("", 200, 2)]


def test_see_other_turns_a_post_into_a_get_and_secrets_stay_at_home() -> None:
    async def work() -> tuple[Seen, list[bytes]]:
        other = Hostile([Script((Part(OK),), "keep")])
        async with other as away:
            there = b"HTTP/1.1 303 S\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % away.encode()
            async with Hostile([Script((Part(there),), "close")]) as url:
                headers = {"Authorization": "Bearer secret", "X-Kept": "1"}
                request = Request(method="POST", body="{}", headers=headers, redirects=1)
                return await send(url, 1, request=request), other.requests

    seen, requests = on_uvloop(work)
    assert seen.errors == [""]
    assert requests[0].startswith(b"GET / ")
    assert b"X-Kept: 1" in requests[0]
    assert b"secret" not in requests[0]


def test_a_chain_of_redirects_is_one_request_from_its_first_sending_on() -> None:
    home = Script(
        (Part(b"HTTP/1.1 302 F\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n", 0.1),), "close"
    )
    seen = on_uvloop(
        lambda: play([home, Script((Part(OK),), "keep")], 1, request=Request(redirects=1))
    )
    exchange = seen.exchanges[0]
    assert exchange.done_ns - exchange.sent_ns > 0.1e9
    assert exchange.prepared.request.path == "/"


def test_local_shortages_have_classes_of_their_own() -> None:
    assert ERRORS[kind_of(OSError(errno.EADDRNOTAVAIL, ""), "connect")] == "ports"
    assert ERRORS[kind_of(OSError(errno.EMFILE, ""), "connect")] == "files"
    assert ERRORS[kind_of(OSError(errno.ECONNREFUSED, ""), "connect")] == "connect"
    assert kind_of(ssl.SSLError("x"), "connect") == CODES["tls"]


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


async def over_tls(certificate: tuple[Path, Path], count: int, **client: Any) -> Seen:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    body = b"b" * 300_000

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        return await send(f"https://localhost:{port}/", count, **client)
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
