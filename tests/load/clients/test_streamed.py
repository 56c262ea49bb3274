"""Streamed answers: their events, instants of chunks, successes and failures, and the record."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from perflab.errors import ParameterError
from perflab.load.clients import streams
from perflab.load.clients.stream_formats import LONGEST_EVENT_BYTES, JsonLines, ServerSentEvents
from perflab.load.clients.streams import Streamed, Streaming
from perflab.load.options import LoadOptions
from perflab.load.workload import Request
from tests.load.clients.hostile import ClientReport, Part, Script, on_uvloop, play
from tests.load.meter import cut
from tests.support.examples import examples

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"
MEMBER = '"done":true'
SSE = Request(stream="sse", end_marker="[DONE]")


def framed(data: bytes) -> bytes:
    """Return bytes as one chunk of HTTP's framing."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(text: bytes) -> bytes:
    return b"data: %s\n\n" % text


def tokens(count: int, pause_s: float = 0.0) -> Script:
    parts = (Part(HEAD), Part(framed(event(b"token")), pause_s, count), Part(framed(DONE) + LAST))
    return Script(parts, end="keep")


def whole(*bodies: bytes) -> Script:
    return Script((Part(HEAD + b"".join(map(framed, bodies)) + LAST),), end="keep")


def asked(script: Script, request: Request, count: int = 1, **more: Any) -> ClientReport:
    return on_uvloop(lambda: play([script], count, request=request, **more))


def stream_of(report: ClientReport) -> Streamed:
    stream = report.exchanges[0].stream
    assert stream is not None
    return stream


def test_an_event_has_the_instant_of_the_read_that_completed_it() -> None:
    stream = Streamed(Streaming("sse"))
    stream.take(b"data: one\n\ndata: tw")
    stream.note(1_000)
    stream.take(b"o")
    stream.note(2_000)
    # HTTP's framing may cut one read into several pieces.
    stream.take(b"\n\n")
    stream.take(b"data: three\n\n")
    stream.note(3_000)
    assert list(zip(stream.at_ns, stream.sizes, strict=True)) == [
        (1_000, 3), (3_000, 3), (3_000, 5),
    ]  # fmt: skip


def test_chunks_come_while_the_answer_does() -> None:
    report = asked(tokens(5, 0.02), SSE)
    (exchange,), stream = report.exchanges, stream_of(report)
    assert report.errors == [""]
    assert list(stream.sizes) == [5] * 5 + [6]
    assert list(stream.at_ns) == sorted(stream.at_ns)
    assert exchange.first_byte_ns <= stream.at_ns[0]
    assert stream.at_ns[-1] <= exchange.done_ns
    # The server paused between the chunks, so they did not arrive together.
    assert len(set(stream.at_ns)) >= 3
    assert stream.chunks == 5


@pytest.mark.parametrize(
    ("script", "words", "expected"),
    [
        (whole(event(b"a"), event(b"b"), DONE), {}, ""),
        (whole(event(b"a"), event(b"b"), DONE), {"min_chunks": 3}, "stream_short"),
        (whole(DONE), {}, "stream_short"),
        (whole(event(b"a")), {}, "stream_unended"),
        (whole(event(b"a"), DONE, event(b"b")), {}, "stream_unended"),
        (whole(b'{"x":1}\n{"done":true}\n'), {"stream": "ndjson", "end_marker": '"done":true'}, ""),
        (whole(b'{"x":1}\n{"done":true}\n'), {"stream": "ndjson", "end_marker": '"done":false'},
         "stream_unended"),
        (whole(b"data: " + b"x" * LONGEST_EVENT_BYTES), {}, "event_too_long"),
        (whole(b"x" * (LONGEST_EVENT_BYTES + 1)), {"stream": "ndjson", "end_marker": MEMBER},
         "event_too_long"),
        (Script((Part(HEAD + framed(event(b"a"))),)), {}, "truncated"),
        (whole(event(b"a"), DONE), {"expect_body": "b"}, "body"),
    ],
)  # fmt: skip
def test_a_stream_is_a_success_or_has_an_error_class_of_its_own(
    script: Script, words: dict[str, Any], expected: str
) -> None:
    request = Request.model_validate({**SSE.model_dump(), **words})
    assert asked(script, request).errors == [expected]


def test_a_stream_of_too_many_chunks_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_CHUNKS", 5)
    assert asked(whole(event(b"a") * 9, DONE), SSE).errors == ["stream_too_long"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"min_chunks": 3}, "need stream="),
        ({"method": "HEAD"}, "HEAD cannot be sent"),
        ({"stream": "sse", "redirects": 1}, "follows no redirects"),
        ({"stream": "sse", "end_marker": "a\nb"}, "one line"),
        ({"stream": "ndjson", "end_marker": "[DONE]"}, "no member of a JSON object"),
    ],
)
def test_impossible_expectations_of_a_stream_are_refused_before_the_load(
    words: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        Request.model_validate(words)


def test_the_options_of_the_command_make_a_streaming_request() -> None:
    asked = {"url": "http://127.0.0.1:1/", "users": 1, "min_chunks": 3}
    options = LoadOptions.of({**asked, "stream": "sse", "end_marker": "[DONE]"})
    assert options.workload().request.streaming == Streaming("sse", 3, "[DONE]")
    with pytest.raises(ParameterError, match="--min-chunks needs --stream"):
        LoadOptions.of(asked).workload()


SSE_WORDS = [
    b"data", b"data: ", b"data:", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"x", b"[DONE]",
    b"\xef\xbb\xbf", b"id: 1", b"event: a", b"retry: 3", "é\u2028".encode(), b"\xff", b"\x0b\x85",
]  # fmt: skip
JSON_WORDS = [b"{}", b'{"done":true}', b'{"done":1}', b'"', b"\n", b"\r", b"\r\n", b" ", b"{"]


def fed(
    events: ServerSentEvents | JsonLines, pieces: Sequence[bytes]
) -> tuple[list[int], bool, bool]:
    lengths = [length for piece in pieces for length in events.feed(piece)]
    return lengths, events.is_ended, events.too_long


def dispatched(whole: bytes) -> list[bytes]:
    """Return the data of all events of a whole stream, by the steps of the standard."""
    text = whole.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    *lines, _ = re.split("\r\n|\r|\n", text)
    events, data = [], ""
    for line in lines:
        if not line:
            if data:
                events.append(data.removesuffix("\n"))
            data = ""
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data += value.removeprefix(" ") + "\n"
    return [data.encode("utf-8", "surrogateescape") for data in events]


def lines_of(whole: bytes) -> list[bytes]:
    *lines, _ = whole.split(b"\n")
    return [line for line in (raw.removesuffix(b"\r") for raw in lines) if line]


def has_member(line: bytes) -> bool:
    try:
        read = json.loads(line)
    except ValueError:
        return False
    return isinstance(read, dict) and read.get("done") is True


STANDARDS = [
    (partial(ServerSentEvents, "[DONE]"), SSE_WORDS, dispatched, b"[DONE]".__eq__),
    (partial(JsonLines, MEMBER), JSON_WORDS, lines_of, has_member),
]


@settings(max_examples=examples(400), deadline=None)
@given(st.sampled_from(STANDARDS), st.lists(st.integers(0, 10_000), max_size=12), st.data())
def test_events_are_those_of_the_standard_however_the_bytes_are_cut(
    standard: Any, places: list[int], data: st.DataObject
) -> None:
    make, words, events_of, ends = standard
    whole = data.draw(st.lists(st.sampled_from(words), max_size=30).map(b"".join))
    expected = events_of(whole)
    lengths, is_ended, too_long = fed(make(), cut(whole, places))
    assert lengths == [len(event) for event in expected]
    assert is_ended == (bool(expected) and ends(expected[-1]))
    assert not too_long
