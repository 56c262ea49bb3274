"""The end of the data and the end of an answer, as every client must tell them apart."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from perflab.load.workload import Burst, Request, Workload
from tests.load.hostile import End, Hostile, Part, Script, on_uvloop
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
def test_an_answer_is_whole_only_if_its_end_was_said(
    client: str, encrypted: bool, tmp_path: Path
) -> None:
    key, certificate = a_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
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
