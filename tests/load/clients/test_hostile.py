"""The lean client against hostile servers: it counts every request, and never fails or hangs."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab.load.workload import ClosedLoop, Request, Workload
from tests.load.clients.hostile import (
    OK,
    ClientReport,
    End,
    Hostile,
    Part,
    Script,
    check,
    on_uvloop,
    play,
    send,
    sent_to,
)
from tests.load.meter import Meter
from tests.load.processes import a_certificate
from tests.support.examples import examples

MOVED = b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


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
# Most scripts end the connection; the others may leave a request unanswered until its timeout.
SCRIPTS = st.builds(
    lambda parts, end, reads: Script(tuple(Part(part) for part in parts), end, reads),
    PARTS,
    st.sampled_from(["close", "reset", "close", "reset", "keep"]),
    st.sampled_from([True, True, True, False]),
).filter(lambda script: script.reads or script.end != "keep")
REQUESTS = st.builds(
    lambda method, redirects, body, judged: Request(
        method=method,
        redirects=redirects if method == "GET" else 0,
        body=body if method == "POST" else "",
        expect_body="ok" if judged else "",
        expect_status=0 if judged else 200,
    ),
    st.sampled_from(["GET", "GET", "POST"]),
    st.integers(0, 2),
    st.sampled_from(["", "{}"]),
    st.sampled_from([False, False, True]),
)


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(SCRIPTS, min_size=1, max_size=4),
    REQUESTS,
    st.sampled_from(["keep_alive", "per_request"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([-1, -1, 0, 0.002, 0.005]),
)
def test_every_request_to_a_hostile_server_ends_once_with_a_named_class(
    scripts: list[Script],
    request: Request,
    connection: str,
    sticky: bool,
    together: bool,
    abort_after_s: float,
) -> None:
    report = on_uvloop(
        lambda: play(
            scripts,
            4,
            together=together,
            request=request,
            connection=connection,
            connections=4 if sticky else 2,
            sticky=sticky,
            abort_after_s=abort_after_s,
            timeout_s=0.02,
        )
    )
    check(report, 4)


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("sticky", [False, True])
def test_a_connection_that_ends_between_requests_is_opened_again(end: End, sticky: bool) -> None:
    hostile = Hostile([Script((Part(OK),), end)])
    report = on_uvloop(lambda: sent_to(hostile, 3, pause_s=0.01, sticky=sticky))
    check(report, 3)
    assert report.errors == [""] * 3
    assert hostile.connections == 3


def test_unrequested_bytes_are_no_answer_to_the_next_request() -> None:
    script = Script((Part(OK), Part(b"HTTP/1.1 500 No\r\n\r\n", 0.01)), "hang")
    report = on_uvloop(lambda: play([script], 3, pause_s=0.3))
    assert report.outcomes == [("", 200, 2)] * 3


def test_an_answer_that_comes_after_the_timeout_is_no_answer_to_the_next_request() -> None:
    late = b"HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n"
    scripts = [Script((Part(late, 0.6),), "keep"), Script((Part(OK, 0.03),), "keep")]
    report = on_uvloop(lambda: play(scripts, 5, timeout_s=0.5))
    assert report.errors == ["timeout", "", "", "", ""]


def test_a_port_without_a_server_is_connect_and_does_not_recurse() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        report = on_uvloop(lambda: send(url, 1000, together=True, connections=5))
    check(report, 1000)
    assert set(report.errors) == {"connect"}


def test_a_name_that_does_not_exist_is_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    report = on_uvloop(lambda: send("http://no.such.host/", 2, allowed=("no.such.host",)))
    assert report.errors == ["dns", "dns"]


def test_an_answer_before_the_request_was_sent_is_taken_and_the_connection_dropped() -> None:
    hostile = Hostile([Script((Part(OK),), "hang", reads=False)])
    big = Request(method="POST", body="x" * 5_000_000)
    report = on_uvloop(lambda: sent_to(hostile, 4, request=big))
    check(report, 4)
    assert report.errors == [""] * 4
    # An unsent rest of a body would become the begin of the next request on the connection.
    assert hostile.connections == 4


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return a_certificate(tmp_path_factory.mktemp("tls"))


def trust(**words: Any) -> Callable[[], ssl.SSLContext]:
    arrivals = ClosedLoop(users=1, requests=1)
    return Workload(request=Request(), arrivals=arrivals, **words).tls_context


async def over_tls(
    certificate: tuple[ssl.SSLContext, Path], count: int, host: str = "127.0.0.1", **client: Any
) -> ClientReport:
    async with Meter(certificate[0], host=host) as url:
        return await send(url, count, request=Request(path="/300000"), **client)


def test_tls_works_with_a_trusted_certificate_and_is_refused_without(
    certificate: tuple[ssl.SSLContext, Path],
) -> None:
    trusting = trust(ca_file=str(certificate[1]))
    trusted = on_uvloop(lambda: over_tls(certificate, 5, tls=trusting))
    assert trusted.outcomes == [("", 200, 300_000)] * 5
    assert on_uvloop(lambda: over_tls(certificate, 2)).errors == ["tls", "tls"]
    careless = on_uvloop(lambda: over_tls(certificate, 2, tls=trust(verify_tls=False)))
    assert careless.errors == ["", ""]


def test_certificates_that_cannot_be_read_or_name_another_host_are_tls_errors(
    certificate: tuple[ssl.SSLContext, Path], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for path in (tmp_path / "missing.pem", empty):
        tls = trust(ca_file=str(path))
        report = on_uvloop(lambda tls=tls: over_tls(certificate, 2, tls=tls))
        check(report, 2)
        assert report.errors == ["tls", "tls"]
    options = {"tls": trust(ca_file=str(certificate[1])), "host": "127.0.0.2"}
    assert on_uvloop(lambda: over_tls(certificate, 1, **options)).errors == ["tls"]


@pytest.mark.parametrize(
    ("end", "kind", "timeout_s"),
    [("close", "tls", 5.0), ("reset", "tls", 5.0), ("hang", "timeout", 0.1)],
)
def test_a_server_that_ends_in_the_handshake_or_is_silent_has_its_class(
    end: End, kind: str, timeout_s: float
) -> None:
    async def work() -> ClientReport:
        async with Hostile([Script((), end, reads=False)]) as url:
            return await send(url.replace("http:", "https:"), 2, timeout_s=timeout_s)

    report = on_uvloop(work)
    check(report, 2)
    assert report.errors == [kind] * 2
