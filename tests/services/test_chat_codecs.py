"""Codecs of the chat service: texts as they are, garbage refused, and the codec benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat.envelopes import Message
from chatting import CODECS, compiled_codecs
from hypothesis import given, settings
from hypothesis import strategies as st
from specimen.refusal import Refused

from perflab.systems.chat.experiments.serialization import SIZES

numbers = st.integers(-(2**63), 2**63 - 1)
values = st.none() | st.booleans() | numbers | st.text() | st.lists(numbers)
garbage = st.binary() | st.text() | st.dictionaries(st.text(), values).map(json.dumps)


@pytest.fixture(scope="module")
def coders(own_places: Path) -> Any:  # noqa: ARG001
    """Coders by codec and shape."""
    return compiled_codecs().CODERS


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), max_size=80), sequence=numbers)
def test_a_text_is_in_its_frame_as_it_is(coders: Any, codec: str, text: str, sequence: int) -> None:
    if codec in ("json", "orjson", "msgspec"):
        # JSON must escape these, and nothing else; the other codecs escape nothing at all.
        text = "".join(sign for sign in text if sign >= " " and sign not in '"\\')
    frame = coders[codec]["envelope"].encode(Message("channel1", "user1", sequence, text))
    assert text.encode() in (frame.encode() if isinstance(frame, str) else frame)


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=250, deadline=None)
@given(frame=garbage)
def test_garbage_is_refused_and_nothing_else_happens(coders: Any, codec: str, frame: Any) -> None:
    coder = coders[codec]["envelope"]
    for sent in (frame, frame.encode() if isinstance(frame, str) else frame):
        try:
            envelope = coder.decode(sent)
        except Refused as refused:
            refused.reason.encode()
        else:
            assert coder.decode(coder.encode(envelope)) == envelope


HALF_A_PAIR = b'{"kind": "send", "channel": "channel1", "text": "\\ud800"}'


@pytest.mark.parametrize(
    ("codec", "frame"),
    [
        ("json", '{"kind": "shout", "channel": "channel1", "text": "x"}'),
        *((codec, HALF_A_PAIR) for codec in ("json", "orjson", "msgspec")),
        ("json", b"[" * 15_000),
        ("msgspec", b'{"kind": "ping", "stamp": 9223372036854775808}'),
        ("protobuf", b""),
        ("msgpack", b"\x81\xa4kind\xa4ping\x00"),
    ],
    ids=str,
)
def test_a_frame_of_wrong_content_is_refused(coders: Any, codec: str, frame: Any) -> None:
    with pytest.raises(Refused, match=f"no {codec} envelope") as refused:
        coders[codec]["envelope"].decode(frame)
    assert refused.value.code == "bad_frame"


@pytest.mark.parametrize("codec", CODECS)
def test_the_benchmark_does_what_each_operation_says(coders: Any, codec: str) -> None:
    from chat.benchmark import MESSAGES, step_of

    for shape, value in MESSAGES.values():
        coder = coders[codec][shape]
        frame = coder.encode(value)
        done = {}
        for operation in ("serialize", "deserialize", "serialize_values", "deserialize_values"):
            step, argument = step_of(coder, operation, value, frame)
            done[operation] = step(argument)
        assert done["serialize"] == done["serialize_values"] == frame
        assert coder.value(done["deserialize"]) == done["deserialize_values"] == value


@pytest.mark.usefixtures("coders")
def test_messages_have_the_sizes_that_the_study_published_and_the_experiment_knows() -> None:
    from chat.benchmark import MESSAGES, measure

    sizes = {
        message: {codec: measure(codec, message, "serialize", 1)[1] for codec in CODECS}
        for message in MESSAGES
    }
    assert sizes == SIZES
    published = {codec: sizes["published"][codec] for codec in ("json", "orjson", "protobuf")}
    assert published == {"json": 132, "orjson": 116, "protobuf": 64}
