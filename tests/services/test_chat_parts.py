"""Parts of the chat service that need no server: accounts, store and codecs."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from chat.channels import begins_subscribed
from chat.envelopes import Message
from chat.store import BATCH_SIZE, FIRST_SEQUENCE, Commits, Counts, Store
from chatting import CODECS, compiled_codecs
from hypothesis import given, settings
from hypothesis import strategies as st
from running import told_inside, use_packages_of
from specimen.refusal import Refused

from perflab.systems.chat.experiments.profile import DEFLATE
from perflab.systems.chat.experiments.serialization import SIZES


@pytest.fixture(scope="module")
def accounts(own_places: Path) -> Any:  # noqa: ARG001
    """The library that hashes passwords is the service's, not the lab's."""
    use_packages_of("chat")
    from chat import accounts

    return accounts


@pytest.mark.parametrize("share", [0.0, 0.25, 0.64, 1.0])
def test_a_message_reaches_the_share_of_those_who_are_there(share: float) -> None:
    for users in (50, 250, 425):
        for channel in range(10):
            reached = sum(begins_subscribed(user, channel, 10, share) for user in range(users))
            assert reached == pytest.approx(share * users, abs=3)


def test_a_token_is_its_users_and_is_kept_as_a_digest(accounts: Any) -> None:
    tokens = accounts.Tokens([])
    token, digest = tokens.issue("user7")
    assert token not in digest
    assert tokens.user_of(token) == accounts.Tokens([(digest, "user7")]).user_of(token) == "user7"
    for wrong in ("", digest, token[:-1]):
        with pytest.raises(Refused, match="log in"):
            tokens.user_of(wrong)
    tokens.clear()
    with pytest.raises(Refused, match="log in"):
        tokens.user_of(token)


def message(number: int) -> Message:
    return Message("channel1", "user1", FIRST_SEQUENCE + number, "x")


def test_a_transaction_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.commit([("INSERT INTO tokens VALUES (?, ?)", ("a", "user1"))])
    both = [("INSERT INTO tokens VALUES (?, ?)", (digest, "user2")) for digest in ("b", "a")]
    with pytest.raises(Refused, match="UNIQUE"):
        store.commit(both)
    assert store.tokens() == [("a", "user1")]
    store.commit(both[:1])
    assert store.tokens() == [("a", "user1"), ("b", "user2")]


@pytest.mark.parametrize(("commit", "told_at_once"), [("batched", 0), ("write_behind", 1)])
def test_a_message_is_told_to_be_stored_when_the_setting_says(
    tmp_path: Path, commit: str, told_at_once: int
) -> None:
    counts, told = Counts(), list[Refused | None]()
    store = Store(tmp_path)

    async def scene() -> None:
        commits = Commits(Store(tmp_path), commit, counts)
        commits.message(message(0), told.append)
        assert len(told) == told_at_once
        assert counts.stored == 0
        for number in range(1, BATCH_SIZE):
            commits.message(message(number), told.append)
        assert len(told) == BATCH_SIZE
        commits.message(message(BATCH_SIZE), told.append)
        commits.flush()
        assert told == [None] * (BATCH_SIZE + 1)
        assert counts.stored == BATCH_SIZE + 1
        commits.close()

    asyncio.run(scene())
    assert store.next_sequence() == FIRST_SEQUENCE + BATCH_SIZE + 1


def test_the_compressing_step_of_the_services_library_is_watched() -> None:
    module, name = "websockets.extensions.permessage_deflate", "PerMessageDeflate.encode"
    told_inside("chat", f"import json, {module}; {module}.{name}; print(json.dumps(0))")
    frame = f"{name} ({module.replace('.', '/')}.py)"
    assert re.search(DEFLATE, frame)
    assert not re.search(DEFLATE, frame.replace("encode", "decode"))


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
