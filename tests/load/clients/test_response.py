"""The reader of responses: any bytes are a response or have an error class, in any pieces."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load.clients import body, response
from perflab.load.clients.body import Body, BodyRules
from perflab.load.clients.client import make_client
from perflab.load.clients.exchange import Prepared
from perflab.load.clients.response import (
    BadResponse,
    ResponseReader,
    parse_server_timing,
    server_phases,
)
from perflab.load.clients.targets import split
from perflab.load.workload import Request, Workload
from tests.load.clients.hostile import ClientReport, Hostile, Part, Script, on_uvloop, send
from tests.load.meter import PIECE, Meter, closed_loop, crc32_of, cut
from tests.support.examples import examples

KEEP = BodyRules(kept=True)
OK = b"HTTP/1.1 200 OK\r\n"


@dataclass(frozen=True)
class Sample:
    """A valid response: its bytes, and how a reader must read them."""

    raw: bytes
    status: int
    body: bytes
    keep_alive: bool
    ends_by_closing: bool = False


def chunked(body: bytes, sizes: list[int], extension: bytes, trailer: bytes) -> bytes:
    pieces, rest = [], body
    for size in sizes:
        part, rest = rest[:size], rest[size:]
        if part:
            pieces.append(b"%x%s\r\n%s\r\n" % (len(part), extension, part))
    if rest:
        pieces.append(b"%x\r\n%s\r\n" % (len(rest), rest))
    return b"".join(pieces) + b"0\r\n" + trailer + b"\r\n"


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
INTERIMS = [b"", CONTINUE, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 2]


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    status = draw(st.sampled_from([200, 201, 204, 301, 304, 404, 500]))
    body = draw(st.binary(max_size=200)) if status not in (204, 304) else b""
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    interim = draw(st.sampled_from(INTERIMS))
    close = draw(st.booleans())
    extra = draw(st.sampled_from([b"", b"X-A: b\r\n", b"Server-Timing: app;dur=2.5\r\n"]))
    head = interim + b"HTTP/1.1 %d Some Reason\r\n" % status + extra
    connection = b"Connection: close\r\n" if close else b""
    if status in (204, 304):
        return Sample(head + connection + b"\r\n", status, b"", not close)
    if framing == "close":
        return Sample(head + b"\r\n" + body, status, body, False, ends_by_closing=True)
    if framing == "length":
        raw = head + connection + b"Content-Length: %d\r\n\r\n" % len(body) + body
        return Sample(raw, status, body, not close)
    sizes = draw(st.lists(st.integers(1, 50), max_size=4))
    extension = draw(st.sampled_from([b"", b";name=value", b';a="q;\\"";b']))
    trailer = draw(st.sampled_from([b"", b"X-Sum: 1\r\n", b"A: 1\r\nB: 2\r\n"]))
    coding = draw(st.sampled_from([b"Transfer-Encoding: chunked", b"TRANSFER-ENCODING:Chunked "]))
    raw = head + connection + coding + b"\r\n\r\n"
    return Sample(raw + chunked(body, sizes, extension, trailer), status, body, not close)


def read(reader: ResponseReader, parts: Iterable[bytes]) -> str:
    """Feed the parts and then the end of the stream; return the error class or ''."""
    for part in parts:
        try:
            if reader.feed(part):
                return ""
        except BadResponse as error:
            return error.kind
    return reader.end()


CUTS = st.lists(st.integers(0, 10_000), max_size=6)


@settings(max_examples=examples(400), deadline=None)
@given(samples(), CUTS)
def test_a_valid_response_is_the_same_however_it_is_cut(sample: Sample, cuts: list[int]) -> None:
    reader = ResponseReader(KEEP)
    assert read(reader, cut(sample.raw, cuts)) == ""
    assert (reader.status, reader.size) == (sample.status, len(sample.body))
    assert reader.give_body() == sample.body
    assert reader.complete
    assert reader.keep_alive == sample.keep_alive
    timing = {"app": 2.5} if b"Server-Timing" in sample.raw else None
    assert server_phases(reader.head) == timing


@settings(max_examples=examples(300), deadline=None)
@given(samples(), CUTS, st.integers(1, 10_000))
def test_a_truncated_response_is_never_complete(sample: Sample, cuts: list[int], at: int) -> None:
    whole = sample.raw
    truncated = whole[: at % len(whole)]
    kind = read(ResponseReader(), cut(truncated, cuts))
    if not truncated:
        assert kind == "closed"
    elif not sample.ends_by_closing:
        assert kind in ("closed", "truncated")


def by_h11(raw: bytes) -> tuple[int, bytes] | None:
    """Read a whole stream with another parser; None when it finds no complete response."""
    peer = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    peer.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    peer.send(h11.EndOfMessage())
    peer.receive_data(raw)
    status, body, ended = 0, b"", False
    while True:
        try:
            event = peer.next_event()
        except h11.RemoteProtocolError:
            return None
        if event is h11.NEED_DATA and not ended:
            peer.receive_data(b"")
            ended = True
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.InformationalResponse):
            continue
        else:
            return (status, body) if isinstance(event, h11.EndOfMessage) else None


STATUS_LINES = [
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200\r\n", b"HTTP/1.0 404 No\r\n", b"HTTP/1.1 204 N\r\n",
    b"HTTP/1.1 304 N\r\n", b"RTSP/1.0 200 OK\r\n", b"HTTP/1.1 099 No\r\n", b"\r\n",
]  # fmt: skip
LINES = [
    b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\n", b"Content-Length: 2\r\n",
    b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked \t\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: xchunked\r\n", b"Connection: close\r\n", b"A:b \t \r\n",
    b"A:\x80\xff\r\n", b" fold\r\n", b"\r\n", b"\r\n\r\n", b"\r\nok", b"2\r\nok\r\n", b"02\r\n",
    b"5;a=b\r\nhello\r\n", b"0\r\n\r\n", b"0\r\nT: x\r\n\r\n", b"\n", b"\r", b"\0", b"x",
]  # fmt: skip


@settings(max_examples=examples(800), deadline=None)
@given(st.sampled_from(STATUS_LINES), st.lists(st.sampled_from(LINES), max_size=6))
def test_an_independent_parser_reads_complete_responses_the_same(
    status_line: bytes, lines: list[bytes]
) -> None:
    raw = status_line + b"".join(lines)
    reader = ResponseReader(KEEP)
    kind = read(reader, [raw])
    theirs = by_h11(raw)
    if kind == "":
        # h11 refuses codings that it does not know even where no body can come.
        without_body = reader.status in (204, 304)
        if theirs is not None or not (without_body and b"Transfer-Encoding" in raw):
            assert theirs == (reader.status, reader.give_body())
    elif kind in ("closed", "truncated"):
        assert theirs is None


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (CONTINUE, "truncated"),
        (b"hello", "protocol"),
        (OK + b"A: b\x00\r\n\r\n", "protocol"),
        (OK + b"A: b\r\n folded\r\nContent-Length: 0\r\n\r\n", "protocol"),
        (OK + b"Content-Length: -1\r\n\r\n", "protocol"),
        (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\na", "protocol"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nokX\r\n", "protocol"),
        (OK + b"Transfer-Encoding: gzip\r\n\r\nabc", "protocol"),
    ],
)
def test_wrong_responses_have_their_class(raw: bytes, kind: str) -> None:
    assert read(ResponseReader(), [raw]) == kind


@settings(max_examples=examples(200), deadline=None)
@given(st.text("ab", max_size=8), st.text("ab", min_size=1, max_size=4), CUTS)
@pytest.mark.promise
def test_text_and_checksum_are_judged_however_the_body_is_cut(
    text: str, searched: str, cuts: list[int]
) -> None:
    whole = text.encode()
    right = BodyRules(searched.encode(), zlib.crc32(whole))
    wrong = BodyRules(crc32=zlib.crc32(whole) ^ 1)
    for rules, expected in ((right, searched in text), (wrong, False)):
        body = Body(rules)
        for piece in cut(whole, cuts):
            body.take(piece)
        assert (not body.fault) == expected


HOSTILE_TIMING = (
    "a;dur=1e300, b;dur=nan, c;dur=-1, d;dur=inf, \x85\xe9;dur=2, ;dur=3, e;dur=4, f;dur="
)


def test_only_durations_that_can_be_recorded_are_phases() -> None:
    assert parse_server_timing(HOSTILE_TIMING) == {"e": 4.0}


def test_durations_of_one_name_are_added_up_in_one_header_or_in_several() -> None:
    assert parse_server_timing("db;dur=2, db;dur=3;desc=again, a;dur=1;dur=9") == {"db": 5, "a": 1}
    head = b"HTTP/1.1 200 OK\r\nServer-Timing: db;dur=2\r\nserver-timing: db;dur=3, a;dur=1"
    assert server_phases(head) == {"db": 5, "a": 1}


@pytest.mark.parametrize("client", ["lean", "aiohttp", "httpx"])
def test_every_client_reads_all_headers_of_one_name(client: str) -> None:
    timings = b"Server-Timing: db;dur=2\r\nServer-Timing: db;dur=3\r\n"
    script = Script((Part(OK + timings + b"Content-Length: 0\r\n\r\n"),), "keep")
    arrivals = {"kind": "closed", "users": 1, "requests": 2}
    work = Workload.model_validate({"request": {}, "arrivals": arrivals, "client": client})
    phases: list[dict[str, float] | None] = []

    async def go() -> None:
        async with Hostile([script]) as url:
            prepared = Prepared(work.request, split(url)[0])
            sender = make_client(work, prepared, 1)
            await closed_loop(
                sender, prepared, 1, 2, lambda exchange: phases.append(exchange.phases)
            )

    on_uvloop(go)
    assert phases == [{"db": 5}] * 2


def test_a_kept_body_has_a_limit_and_a_judged_body_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body, "KEPT_BYTES", 1500)
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    assert read(ResponseReader(KEEP), [head, *[b"x" * 100] * 15]) == ""
    assert read(ResponseReader(KEEP), [head, *[b"x" * 100] * 16]) == "body_too_large"
    assert read(ResponseReader(BodyRules(b"y")), [head, *[b"x" * 100] * 16]) == ""


LONG = 5 * 1024 * 1024 + 3


def outcome(raw: bytes, cuts: list[int], rules: BodyRules | None) -> tuple[Any, ...]:
    """Return how a reader reads a response in pieces, and one more on the same connection."""
    reader = ResponseReader(rules)
    parts = iter(cut(raw, cuts))
    kind = read(reader, parts)
    # Later parts belong to the next request.
    told = (kind, list(parts), reader.status, reader.size)
    if kind:
        return told
    fault = reader.body.fault if reader.body is not None else 0
    return *told, reader.complete, reader.keep_alive, fault


@settings(max_examples=examples(150), deadline=None)
@given(
    st.integers(60_000, 300_000),
    st.sampled_from([b"", b"Connection: close\r\n", b"Content-Type: x\r\n"]),
    st.sampled_from([b"", b"x", b"HTTP/1.1 200 OK\r\n\r\n"]),
    st.integers(0, 5) | st.integers(0, 300_000),
    st.lists(st.integers(0, 400_000), max_size=8),
    st.sampled_from([None, BodyRules(crc32=crc32_of(100_000)), BodyRules(text=b"\xff\x00\x01")]),
)
def test_a_long_body_is_read_as_the_parser_reads_it(
    size: int, extra: bytes, after: bytes, lost: int, cuts: list[int], rules: BodyRules | None
) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + extra + b"Content-Length: %d\r\n\r\n" % size
    body = (PIECE * 5)[:size]
    raw = head + (body[: size - lost] if lost % 2 else body + after)
    ours = outcome(raw, cuts, rules)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(response, "LONG_BYTES", 1 << 60)
        assert ours == outcome(raw, cuts, rules)


def test_bodies_that_share_a_buffer_are_summed_apart() -> None:
    request = Request(path=f"/{LONG}", expect_crc32=crc32_of(LONG))

    async def go(meter: Meter) -> ClientReport:
        async with meter as url:
            return await send(url, 6, request, together=True, timeout_s=20.0)

    assert on_uvloop(lambda: go(Meter())).outcomes == [("", 200, LONG)] * 6
    assert on_uvloop(lambda: go(Meter(flaw_at=LONG - 1))).errors == ["checksum"] * 6
