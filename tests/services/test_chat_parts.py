"""Parts of the chat service that need no server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from chat import accounts, tokens
from chat.channels import Channels, begins_subscribed
from chat.envelopes import Message
from chat.refusal import ExpiredToken, NotStored, UnknownChannel, WrongToken
from chat.settings import CHOICES, from_environment
from chat.store import Store, message_statement
from running import told_inside, use_packages_of

from perflab.stacks.spec import load_service
from perflab.systems.chat.watched import DEFLATE

NEEDED = {"CHAT_HOST": "127.0.0.1", "CHAT_PORT": "1", "CHAT_DATA": "/none"}


@pytest.fixture(scope="module")
def hashes(own_places: Path) -> None:  # noqa: ARG001
    """The libraries that hash passwords are the service's, not the lab's."""
    use_packages_of("chat")


@pytest.mark.parametrize("share", [0.0, 0.25, 0.64, 1.0])
@pytest.mark.parametrize("channels", [1, 4, 10])
def test_a_message_reaches_the_share_of_those_who_are_there(share: float, channels: int) -> None:
    for users in (50, 250, 425):
        for channel in range(channels):
            reached = sum(
                begins_subscribed(user, channel, channels, share) for user in range(users)
            )
            assert reached == pytest.approx(share * users, abs=3)


def test_every_user_has_the_same_share_of_the_channels() -> None:
    channels = Channels(10, 0.64, [])
    assert {len(channels.of(f"user{number}")) for number in range(400)} == {6, 7}


def test_joins_and_leaves_stay_until_they_are_cleared() -> None:
    channels = Channels(10, 0.64, [("user1", "channel1", 1), ("user1", "channel0", 0)])
    before = {channel.name for channel in Channels(10, 0.64, []).of("user1")}
    assert {channel.name for channel in channels.of("user1")} == before ^ {"channel0", "channel1"}
    channels.change("user1", channels.named("channel1"), subscribed=False)
    assert {channel.name for channel in channels.of("user1")} == before - {"channel0"}
    channels.clear()
    assert {channel.name for channel in channels.of("user1")} == before


def test_an_unknown_channel_is_named() -> None:
    with pytest.raises(UnknownChannel, match="'channel10': channel0 to channel9"):
        Channels(10, 0.64, []).named("channel10")


@pytest.mark.usefixtures("hashes")
@pytest.mark.parametrize("name", CHOICES["login_hash"])
def test_every_hashing_takes_the_password_and_no_other(name: str) -> None:
    hashing = accounts.hashing(name, bcrypt_rounds=5)
    (user, known), *others = accounts.pool(3, hashing)
    assert (user, len(others)) == ("user0", 2)
    assert hashing.verify(known, accounts.PASSWORD)
    for wrong in ("", "correct horsf", accounts.PASSWORD + "x", "ü" * 500, "\0"):
        assert not hashing.verify(known, wrong)


@pytest.mark.usefixtures("hashes")
def test_real_hashes_are_kept() -> None:
    kept = {name: accounts.hashing(name, 7).hash("x") for name in CHOICES["login_hash"]}
    assert kept["bcrypt"].startswith("$2b$07$")
    assert kept["argon2"].startswith("$argon2id$")


def test_a_token_is_its_users_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(tokens.time, "time", lambda: now[0])
    kept = tokens.Tokens(60, [])
    token, (digest, user, expires_s) = kept.issue("user7")
    assert (user, expires_s) == ("user7", 1060.0)
    assert token not in digest
    assert kept.user_of(token) == "user7"
    assert tokens.Tokens(60, [(digest, user, expires_s)]).user_of(token) == "user7"
    now[0] = 1060.0
    with pytest.raises(ExpiredToken):
        kept.user_of(token)
    now[0] += tokens.REMEMBERED_S
    kept.issue("user8")
    with pytest.raises(WrongToken):
        kept.user_of(token)


def test_a_batch_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one, two = (Message("channel1", "user1", number, "x") for number in (1, 2))
    store.commit([message_statement(one)])
    with pytest.raises(NotStored, match="UNIQUE"):
        store.commit([message_statement(two), message_statement(one)])
    assert [entry.sequence for entry in store.history("channel1", 10)] == [1]
    store.commit([message_statement(two)])
    assert [entry.sequence for entry in store.history("channel1", 10)] == [1, 2]
    assert [entry.sequence for entry in store.history("channel1", 1)] == [2]


def test_the_settings_have_the_descriptions_defaults_and_choices() -> None:
    spec = load_service("chat")
    shown = from_environment(NEEDED).public()
    assert shown == {name: setting.default for name, setting in spec.settings.items()}
    described = {name: set(each.choices) for name, each in spec.settings.items() if each.choices}
    assert described == {name: set(choices) for name, choices in CHOICES.items()}
    assert {setting.scope for setting in spec.settings.values()} == {"start"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CHAT_CODEC", "bson"),
        ("CHAT_COMMIT", "never"),
        ("CHAT_ACCOUNTS", "0"),
        ("CHAT_SEND_QUEUE", "ten"),
        ("CHAT_SUBSCRIBER_SHARE", "1.1"),
        ("CHAT_SUBSCRIBER_SHARE", "nan"),
        ("CHAT_TOKEN_TTL_S", "-1"),
    ],
)
def test_a_wrong_variable_is_named_with_its_value(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name} = '{value}' must be"):
        from_environment({**NEEDED, name: value})


def test_phases_survive_a_float_of_32_bits() -> None:
    import numpy as np
    from chat.timing import Phases

    phases: Any = Phases()
    phases.durations_ms["op"] = 0.000123456
    shown = float(phases.header().decode().split(", ")[0].removeprefix("op;dur="))
    assert float(np.float32(shown)) == pytest.approx(0.000123456, rel=1e-6)


def paths(**settings: str) -> set[str]:
    asked = (
        "import json; from chat import application; from chat.settings import from_environment;"
        f"app = application.build(from_environment({ ({**NEEDED, **settings})!r}));"
        "print(json.dumps([route.path for route in app.routes]))"
    )
    return set(told_inside("chat", asked))


def test_the_codec_benchmark_is_there_only_where_it_was_asked_for_and_then_no_user_is() -> None:
    assert not paths() & {"/codec-bench"}
    assert paths() >= {"/login", "/ws", "/history"}
    assert paths(CHAT_BENCHMARK="on") >= {"/codec-bench", "/health", "/counts"}
    assert not paths(CHAT_BENCHMARK="on") & {"/login", "/ws", "/history", "/channels"}


@pytest.mark.parametrize(
    "step",
    [
        "websockets.extensions.permessage_deflate:PerMessageDeflate.encode",
        "wsproto.extensions:PerMessageDeflate.frame_outbound",
    ],
)
def test_the_compressing_step_of_each_of_the_services_libraries_is_watched(step: str) -> None:
    module, _, name = step.partition(":")
    told_inside("chat", f"import json, {module}; {module}.{name}; print(json.dumps(0))")
    frame = f"{name} ({module.replace('.', '/')}.py)"
    assert re.search(DEFLATE, frame)
    assert not re.search(DEFLATE, frame.replace("encode", "decode").replace("out", "in"))
