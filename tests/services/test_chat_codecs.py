"""Codecs of the chat service: what goes in comes out, in all of them alike, whatever it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from chat.envelopes import (
    KINDS,
    Ack,
    Entry,
    Error,
    History,
    Message,
    Ping,
    Pong,
    Published,
    Send,
    Subscribe,
    Unsubscribe,
)
from chat.refusal import BadFrame
from chatting import CODECS, compiled_codecs
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.systems.chat.experiments.serialization import SIZES

LOWEST, HIGHEST = -(2**63), 2**63 - 1
EXTREMES = (LOWEST, -1, 0, 1, 127, 128, 2**31, 2**53 + 1, HIGHEST)
TEXTS = ("", " blanks ", "\0", '"\\', "\x1f\x7f", "café", "𝄞 ünïcode 漢字 🙂", "\u2028", "x" * 5000)
texts = st.text(max_size=60) | st.sampled_from(TEXTS)
numbers = st.integers(LOWEST, HIGHEST) | st.sampled_from(EXTREMES)
floats = st.floats(allow_nan=False, allow_infinity=False)
envelopes = st.one_of(
    st.builds(Send, texts, texts, numbers),
    st.builds(Subscribe, texts, numbers),
    st.builds(Unsubscribe, texts, numbers),
    st.builds(Ping, numbers),
    st.builds(Message, texts, texts, numbers, texts),
    st.builds(Ack, numbers, numbers),
    st.builds(Pong, numbers, numbers, numbers, numbers, numbers),
    st.builds(Error, texts, texts, numbers),
)
published = st.builds(Published, texts, numbers, floats, st.lists(numbers, max_size=12))
entries = st.builds(Entry, texts, numbers, texts)
shapes = {
    "envelope": envelopes,
    "published": published,
    "history": st.builds(History, texts, st.lists(entries, max_size=12)),
}
anything = (
    st.binary(max_size=200)
    | st.text(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | numbers | floats | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=10,
    ).map(json.dumps)
)


@pytest.fixture(scope="module")
def codecs(own_places: Path) -> Any:  # noqa: ARG001
    return compiled_codecs()


def extremes() -> Iterator[Any]:
    """Yield every kind of envelope with every extreme in all of its fields."""
    for kind in KINDS:
        types = get_type_hints(kind)
        for text, number in product(TEXTS, EXTREMES):
            yield kind(*[text if types[name] is str else number for name in kind.__struct_fields__])


def assert_round_trip(coder: Any, values: st.SearchStrategy[Any], fixed: Iterable[Any]) -> None:
    """The property itself: every value comes back equal, with the same types inside."""

    def comes_back(value: Any) -> None:
        again = coder.decode(coder.encode(value))
        assert again == value
        assert repr(again) == repr(value)

    for value in fixed:
        comes_back(value)
    settings(max_examples=80, deadline=None, database=None)(given(values)(comes_back))()


@pytest.mark.parametrize("shape", shapes)
@pytest.mark.parametrize("codec", CODECS)
def test_what_goes_in_comes_out(codecs: Any, codec: str, shape: str) -> None:
    fixed = extremes() if shape == "envelope" else ()
    assert_round_trip(codecs.load(codec)[shape], shapes[shape], fixed)


def test_every_kind_of_envelope_is_among_those_tried() -> None:
    @settings(max_examples=300, deadline=None, database=None)
    @given(envelopes)
    def look(envelope: Any) -> None:
        seen.add(type(envelope))

    seen: set[type] = set()
    look()
    assert seen == set(KINDS)


@pytest.mark.parametrize("shape", shapes)
def test_all_codecs_tell_the_same(codecs: Any, shape: str) -> None:
    coders = [codecs.load(codec)[shape] for codec in CODECS]

    @settings(max_examples=80, deadline=None, database=None)
    @given(value=shapes[shape])
    def agree(value: Any) -> None:
        told = [repr(coder.decode(coder.encode(value))) for coder in coders]
        assert len(set(told)) == 1

    agree()


Wrong = Callable[[Any], Any]


def after_encoding(change: Callable[[bytes], bytes]) -> Wrong:
    return lambda coder: replace(coder, dumps=lambda native: change(coder.dumps(native)))


def after_decoding(change: Callable[[Any], Any]) -> Wrong:
    return lambda coder: replace(coder, value=lambda found: change(coder.value(found)))


def swapped(envelope: Any) -> Any:
    if isinstance(envelope, Message):
        return Message(envelope.sender, envelope.channel, envelope.sequence, envelope.text)
    return envelope


def through_a_float(envelope: Any) -> Any:
    return Ping(int(float(envelope.stamp))) if isinstance(envelope, Ping) else envelope


def stripped(envelope: Any) -> Any:
    if isinstance(envelope, Error):
        return Error(envelope.code, envelope.reason.strip(), envelope.stamp)
    return envelope


def as_float(envelope: Any) -> Any:
    return Ping(float(envelope.stamp)) if isinstance(envelope, Ping) else envelope


@pytest.mark.parametrize(
    ("codec", "wrong"),
    [
        ("protobuf", after_decoding(swapped)),
        ("json", after_decoding(through_a_float)),
        ("msgpack", after_decoding(stripped)),
        ("msgspec", after_decoding(as_float)),
        ("orjson", after_encoding(lambda frame: frame.replace("é".encode(), b"e"))),
        ("orjson", after_encoding(lambda frame: frame.decode("ascii", "ignore").encode())),
    ],
    ids=["fields swapped", "through a float", "stripped", "int as float", "accents", "ascii"],
)
def test_a_wrong_codec_is_caught_by_the_same_property(
    codecs: Any, codec: str, wrong: Wrong
) -> None:
    with pytest.raises(AssertionError):
        assert_round_trip(wrong(codecs.load(codec)["envelope"]), envelopes, extremes())


@pytest.mark.parametrize("codec", CODECS)
def test_a_text_is_in_its_frame_as_it_is(codecs: Any, codec: str) -> None:
    coder = codecs.load(codec)["envelope"]
    # JSON must escape these, and nothing else; the other codecs escape nothing at all.
    escaped = '"\\' + "".join(map(chr, range(32))) if "json" in codec or codec == "msgspec" else ""
    plain = st.text(st.characters(codec="utf-8", exclude_characters=escaped), max_size=80)

    @settings(max_examples=150, deadline=None, database=None)
    @given(text=plain, sequence=numbers)
    def found(text: str, sequence: int) -> None:
        frame = coder.encode(Message("channel1", "user1", sequence, text))
        assert text.encode() in (frame.encode() if isinstance(frame, str) else frame)

    found()


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_is_refused_and_nothing_else_happens(codecs: Any, codec: str) -> None:
    coder = codecs.load(codec)["envelope"]

    @settings(max_examples=250, deadline=None, database=None)
    @given(frame=anything)
    def read(frame: Any) -> None:
        for each in (frame, frame.encode() if isinstance(frame, str) else frame):
            try:
                envelope = coder.decode(each)
            except BadFrame as refused:
                refused.reason.encode()
            else:
                assert coder.decode(coder.encode(envelope)) == envelope

    read()


def test_half_a_surrogate_pair_and_endless_depth_are_refused(codecs: Any) -> None:
    half = '{"kind": "send", "channel": "channel1", "text": "\\ud800"}'
    for codec in ("json", "orjson", "msgspec"):
        for frame in (half, "[" * 15_000, '{"kind":' * 3000):
            with pytest.raises(BadFrame):
                codecs.load(codec)["envelope"].decode(frame.encode())


@pytest.mark.parametrize(
    ("codec", "frame"),
    [
        ("json", '{"kind": "send", "channel": "channel1"}'),
        ("json", '{"kind": "shout", "channel": "channel1", "text": "x"}'),
        ("orjson", b'{"kind": "ping", "stamp": "1"}'),
        ("msgspec", b'{"kind": "ping", "stamp": 9223372036854775808}'),
        ("protobuf", b""),
        ("protobuf", '{"kind": "ping"}'),
        ("msgpack", b"\x81\xa4kind\xa4ping\x00"),
    ],
)
def test_a_frame_of_wrong_content_is_refused(codecs: Any, codec: str, frame: Any) -> None:
    with pytest.raises(BadFrame, match=f"no {codec} envelope"):
        codecs.load(codec)["envelope"].decode(frame)


def test_the_published_message_has_the_published_sizes(codecs: Any) -> None:
    from chat import benchmark

    assert codecs  # chat.proto is compiled
    sizes = {codec: benchmark.measure(codec, "published", "serialize", 1).bytes for codec in CODECS}
    assert {codec: sizes[codec] for codec in ("json", "orjson", "protobuf")} == {
        "json": 132,
        "orjson": 116,
        "protobuf": 64,
    }


@pytest.mark.parametrize("codec", CODECS)
def test_the_benchmark_does_what_each_operation_says(codecs: Any, codec: str) -> None:
    from chat import benchmark

    for shape, value in benchmark.MESSAGES.values():
        coder = codecs.load(codec)[shape]
        frame = coder.encode(value)
        done = {}
        for operation in benchmark.OPERATIONS:
            step, argument = benchmark._step(coder, operation, value, frame)
            done[operation] = step(argument)
        assert done["serialize"] == done["serialize_values"] == frame
        assert coder.value(done["deserialize"]) == done["deserialize_values"] == value


def test_the_experiment_knows_the_bytes_of_every_codec_and_message() -> None:
    assert compiled_codecs()  # chat.proto is compiled
    from chat.benchmark import MESSAGES, measure

    measured = {
        message: {codec: measure(codec, message, "serialize", 1).bytes for codec in CODECS}
        for message in MESSAGES
    }
    assert measured == SIZES
