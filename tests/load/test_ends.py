"""The end of the data and the end of an answer, as every client must tell them apart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from perflab.load.workload import Burst, Request, Workload
from tests.load.clients.hostile import End, Hostile, Part, Script, on_uvloop
from tests.load.meter import drive
from tests.load.processes import a_certificate

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
ANSWERS = {
    "nothing": b"",
    "half-a-head": OK + b"Content-Le",
    "until-the-end": OK + b"\r\nhello",
    "http-1.0": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "empty": OK + b"Connection: close\r\n\r\n",
    "length": OK + b"Content-Length: 5\r\n\r\nhello",
    "no-content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "too-short": OK + b"Content-Length: 9\r\n\r\nhello",
    "chunks": CHUNKS + b"0\r\n\r\n",
    "no-last-chunk": CHUNKS,
}
BY_THE_END = ("until-the-end", "http-1.0", "empty")
CUT_SHORT = ("half-a-head", "too-short", "no-last-chunk")
ENDS: tuple[End, ...] = ("close", "cut", "reset")


def expected(answer: str, end: str, encrypted: bool) -> str:
    """Return the error class by RFC 9112, 6.3 and 9.8."""
    if answer in ("length", "no-content", "chunks"):
        return ""
    if end == "reset":
        return "reset"
    if answer in BY_THE_END:
        return "no_close_notify" if encrypted and end == "cut" else ""
    return "truncated" if answer in CUT_SHORT else "closed"


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("client", ["lean", "aiohttp", "httpx"])
@pytest.mark.promise
def test_an_answer_is_whole_only_if_its_end_was_said(
    client: str, encrypted: bool, tmp_path: Path
) -> None:
    tls, certificate = a_certificate(tmp_path)
    cases = [(answer, end) for answer in ANSWERS for end in ENDS]
    scripts = {
        f"/{answer}/{end}".encode(): Script((Part(ANSWERS[answer]), Part(b"", 0.05)), end)
        for answer, end in cases
    }

    async def errors() -> dict[tuple[str, str], str]:
        found = {}
        async with Hostile([Script()], scripts, tls if encrypted else None) as url:
            for answer, end in cases:
                work = Workload(
                    request=Request(path=f"/{answer}/{end}", expect_status=0),
                    arrivals=Burst(size=1),
                    client=client,  # type: ignore[arg-type]
                    ca_file=str(certificate),
                )
                (found[answer, end],) = await drive(work, url, 1)
        return found

    wanted = {(answer, end): expected(answer, end, encrypted) for answer, end in cases}
    assert on_uvloop(errors) == wanted


async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer over HTTP/2; the path says how much of the answer is sent before the data ends."""
    state = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
    state.initiate_connection()
    writer.write(state.data_to_send())
    while data := await reader.read(65_536):
        for event in state.receive_data(data):
            if not isinstance(event, RequestReceived):
                continue
            path = dict(event.headers)[":path"]
            if path != "/nothing":
                state.send_headers(event.stream_id, [(":status", "200")])
                state.send_data(event.stream_id, b"hello", end_stream=path == "/whole")
            writer.write(state.data_to_send())
            if path != "/whole":
                await asyncio.sleep(0.05)
                writer.transport.abort()
                return
        writer.write(state.data_to_send())


def test_an_answer_over_http2_ends_with_its_last_frame(tmp_path: Path) -> None:
    tls, certificate = a_certificate(tmp_path)
    tls.set_alpn_protocols(["h2"])

    async def errors() -> list[list[str]]:
        server = await asyncio.start_server(cut_off, "127.0.0.1", 0, ssl=tls)
        async with server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            works = (
                Workload(
                    request=Request(path=path),
                    arrivals=Burst(size=1),
                    client="http2",
                    ca_file=str(certificate),
                )
                for path in ("/whole", "/half", "/nothing")
            )
            return [await drive(work, url, 1) for work in works]

    assert on_uvloop(errors) == [[""], ["truncated"], ["closed"]]
