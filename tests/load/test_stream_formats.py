"""Events of streams: those of the standards, whatever pieces their bytes arrive in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load.clients.streams import JsonLines, ServerSentEvents
from tests.support.examples import examples

SSE_WORDS = [
    b"data", b"data: ", b"data:", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"x", b"[DONE]",
    b"\xef\xbb\xbf", b"id: 1", b"event: a", b"retry: 3", "é\u2028".encode(), b"\xff", b"\x0b\x85",
]  # fmt: skip
JSON_WORDS = [b"{}", b'{"done":true}', b'{"done":1}', b'"', b"\n", b"\r", b"\r\n", b" ", b"{"]
MEMBER = '"done":true'


def cut(whole: bytes, places: Iterable[int]) -> list[bytes]:
    edges = sorted({0, len(whole), *(place % (len(whole) + 1) for place in places)})
    return [whole[begin:end] for begin, end in pairwise(edges)]


def fed(
    events: ServerSentEvents | JsonLines, pieces: Sequence[bytes]
) -> tuple[list[int], bool, bool]:
    lengths = [length for piece in pieces for length in events.feed(piece)]
    return lengths, events.is_ended, events.too_long


def dispatched(whole: bytes) -> list[str]:
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
    return events


def lines_of(whole: bytes) -> list[bytes]:
    *lines, _ = whole.split(b"\n")
    return [line for line in (raw.removesuffix(b"\r") for raw in lines) if line]


def has_member(line: bytes) -> bool:
    try:
        read = json.loads(line)
    except ValueError:
        return False
    return isinstance(read, dict) and read.get("done") is True


@settings(max_examples=examples(400), deadline=None)
@given(
    st.lists(st.sampled_from(SSE_WORDS), max_size=30).map(b"".join),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_server_sent_events_are_those_of_the_standard_however_the_bytes_are_cut(
    whole: bytes, places: list[int]
) -> None:
    expected = dispatched(whole)
    lengths, is_ended, too_long = fed(ServerSentEvents("[DONE]"), cut(whole, places))
    assert lengths == [len(data.encode("utf-8", "surrogateescape")) for data in expected]
    assert is_ended == (expected[-1:] == ["[DONE]"])
    assert not too_long


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.sampled_from(JSON_WORDS), max_size=30).map(b"".join),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_lines_of_json_are_the_same_however_the_bytes_are_cut(
    whole: bytes, places: list[int]
) -> None:
    expected = lines_of(whole)
    lengths, is_ended, too_long = fed(JsonLines(MEMBER), cut(whole, places))
    assert lengths == [len(line) for line in expected]
    assert is_ended == (bool(expected) and has_member(expected[-1]))
    assert not too_long


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from([(ServerSentEvents, SSE_WORDS), (JsonLines, JSON_WORDS)]),
    st.integers(1, 20),
    st.data(),
)
def test_an_event_is_too_long_whatever_pieces_it_comes_in(
    known: tuple[type[ServerSentEvents] | type[JsonLines], list[bytes]],
    most: int,
    data: st.DataObject,
) -> None:
    kind, words = known
    whole = data.draw(st.lists(st.sampled_from(words), max_size=20).map(b"".join))
    places = data.draw(st.lists(st.integers(0, 10_000), max_size=12))
    made = partial(kind, longest_bytes=most)
    assert fed(made(), cut(whole, places)) == fed(made(), [whole])
    assert fed(made(), [whole[place : place + 1] for place in range(len(whole))]) == fed(
        made(), [whole]
    )


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        # The examples of WHATWG HTML, 9.2.6.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [10]),
        (b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n", [11, 12]),
        (b"data\n\ndata\ndata\n\ndata:", [0, 1]),
        (b"event: ping\nid: 7\n\n", []),
        (b"Data: x\n\ndatas: x\n\n data: x\n\n", []),
    ],
)  # fmt: skip
def test_the_examples_of_the_standard_have_these_events(whole: bytes, expected: list[int]) -> None:
    assert fed(ServerSentEvents(), [whole])[0] == expected
