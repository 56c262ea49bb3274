"""The reader of responses: whatever arrives has a meaning or a named error class."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load.outcome import CODES
from perflab.load.response import MAX_HEAD_BYTES, BadResponse, ResponseReader


@dataclass(frozen=True)
class Sample:
    """A valid response: its bytes, and what a reader must make of them."""

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


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    status = draw(st.sampled_from([200, 201, 204, 301, 304, 404, 500]))
    body = draw(st.binary(max_size=200)) if status not in (204, 304) else b""
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]))
    close = draw(st.booleans())
    extra = draw(st.sampled_from([b"", b"X-A: b\r\n", b"Server-Timing: app;dur=2.5\r\n"]))
    head = interim + b"HTTP/1.1 %d Some Reason\r\n" % status + extra
    if status in (204, 304):
        connection = b"Connection: close\r\n" if close else b""
        return Sample(head + connection + b"\r\n", status, b"", not close)
    if framing == "close":
        return Sample(head + b"\r\n" + body, status, body, False, ends_by_closing=True)
    connection = b"Connection: close\r\n" if close else b""
    if framing == "length":
        raw = head + connection + b"Content-Length: %d\r\n\r\n" % len(body) + body
        return Sample(raw, status, body, not close)
    sizes = draw(st.lists(st.integers(1, 50), max_size=4))
    extension = draw(st.sampled_from([b"", b";name=value"]))
    trailer = draw(st.sampled_from([b"", b"X-Sum: 1\r\n"]))
    raw = head + connection + b"Transfer-Encoding: chunked\r\n\r\n"
    return Sample(raw + chunked(body, sizes, extension, trailer), status, body, not close)


def split(raw: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(raw) + 1) for cut in cuts})
    parts = [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]
    return [part for part in parts if part]


def read(reader: ResponseReader, parts: list[bytes]) -> str:
    """Feed the parts and then the end of the stream; return the error class or ''."""
    for part in parts:
        try:
            if reader.feed(part):
                return ""
        except BadResponse as error:
            return error.kind
    return reader.end()


CUTS = st.lists(st.integers(0, 10_000), max_size=6)


@settings(max_examples=1500, deadline=None)
@given(samples(), CUTS)
def test_a_valid_response_is_the_same_however_it_is_cut(sample: Sample, cuts: list[int]) -> None:
    reader = ResponseReader(keep_body=True)
    assert read(reader, split(sample.raw, cuts)) == ""
    assert (reader.status, reader.body, reader.size) == (
        sample.status,
        sample.body,
        len(sample.body),
    )
    assert reader.complete
    assert reader.keep_alive == sample.keep_alive
    timing = {"app": 2.5} if b"Server-Timing" in sample.raw else None
    assert reader.phases() == timing


@settings(max_examples=1000, deadline=None)
@given(samples(), CUTS, st.integers(1, 10_000))
def test_a_truncated_response_is_never_complete(sample: Sample, cuts: list[int], at: int) -> None:
    whole = sample.raw
    kept = whole[: at % len(whole)]
    found = read(ResponseReader(), split(kept, cuts))
    if not kept:
        assert found == "closed"
    elif not sample.ends_by_closing:
        assert found in ("closed", "truncated")


@settings(max_examples=1500, deadline=None)
@given(
    samples(),
    CUTS,
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=3)), min_size=1, max_size=4),
)
def test_a_corrupted_response_has_a_meaning_or_a_named_error(
    sample: Sample, cuts: list[int], changes: list[tuple[int, bytes]]
) -> None:
    raw = bytearray(sample.raw)
    for place, new in changes:
        begin = place % (len(raw) + 1)
        raw[begin : begin + 1] = new
    assert read(ResponseReader(), split(bytes(raw), cuts)) in CODES


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=300), CUTS)
def test_noise_has_a_named_error(noise: bytes, cuts: list[int]) -> None:
    assert read(ResponseReader(), split(noise, cuts)) in set(CODES) - {""}


@settings(max_examples=300, deadline=None)
@given(st.lists(samples().filter(lambda sample: sample.keep_alive), min_size=2, max_size=5), CUTS)
def test_one_reader_reads_one_response_after_another(many: list[Sample], cuts: list[int]) -> None:
    reader = ResponseReader(keep_body=True)
    for sample in many:
        reader.begin()
        assert read(reader, split(sample.raw, cuts)) == ""
        assert reader.body == sample.body


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "truncated"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\na", "protocol"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "protocol",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", "truncated"),
        (b"HTTP/1.1 200 OK\r\nA\x00: b\r\n\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nA: b\x00\r\n\r\n", "protocol"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "protocol"),
        (b"hello", "protocol"),
        (b"<html>no head</html>", "protocol"),
        (b"HTTP/2.0 200 OK\r\n\r\n", "protocol"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "protocol"),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "protocol",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "truncated"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "protocol"),
        (b"", "closed"),
        (b"HTTP/1.1 200", "truncated"),
    ],
)
def test_wrong_responses_have_their_class(raw: bytes, kind: str) -> None:
    assert read(ResponseReader(), [raw] if raw else []) == kind


def test_a_header_line_of_100_kilobytes_is_too_large() -> None:
    raw = b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\nContent-Length: 0\r\n\r\n"
    assert read(ResponseReader(), [raw]) == "head_too_large"
    pieces = [raw[place : place + 1000] for place in range(0, len(raw), 1000)]
    assert read(ResponseReader(), pieces) == "head_too_large"


def test_endless_headers_are_given_up_at_the_limit() -> None:
    reader = ResponseReader()
    reader.feed(b"HTTP/1.1 200 OK\r\n")
    line = b"X-Again: " + b"y" * 91 + b"\r\n"
    lines = [line] * (MAX_HEAD_BYTES // len(line) + 2)
    assert read(reader, lines) == "head_too_large"


def test_endless_interim_responses_are_given_up_at_the_limit() -> None:
    assert read(ResponseReader(), [b"HTTP/1.1 100 Continue\r\n\r\n"] * 1000) == "protocol"


def test_an_answer_to_head_has_no_body() -> None:
    reader = ResponseReader()
    for _ in range(3):
        reader.begin(bodiless=True)
        assert reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
        assert reader.size == 0
        assert reader.keep_alive
    reader.begin(bodiless=True)
    with pytest.raises(BadResponse, match="HEAD"):
        reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde")
    reader.begin()
    assert reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab")
