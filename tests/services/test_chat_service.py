"""The chat service for real, spoken to by the client of the ``websockets`` package."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest
from chat.envelopes import Ack, Error, Message, Ping, Pong, Send, Subscribe, Unsubscribe
from chatting import (
    CODECS,
    EASY,
    IMPLEMENTATIONS,
    PASSWORD,
    join,
    join_all,
    log_in,
    part,
    run,
    until,
)
from running import Service, Start, call, counts

TEXT = 'Grüße aus 東京 🙂 with a "quote" and a \\'
LOOPS = ("asyncio", "uvloop")
# Every codec once, both implementations of WebSockets and both loops among them.
VARIANTS = [
    (codec, IMPLEMENTATIONS[place % 2], LOOPS[place // 2 % 2]) for place, codec in enumerate(CODECS)
]


@pytest.fixture(scope="module", params=VARIANTS, ids=" ".join)
def variant(request: pytest.FixtureRequest, started: Start) -> Service:
    codec, implementation, loop = request.param
    serialize = "per_send" if loop == "uvloop" else "per_message"
    return started(
        "chat", codec=codec, websocket=implementation, loop=loop, serialize=serialize, **EASY
    )


@pytest.fixture(scope="module")
def plain(started: Start) -> Service:
    """The service without compression, on one core."""
    return started("chat", deflate="off", bind="on", **EASY)


def test_two_users_chat_through_every_codec_with_compression(variant: Service) -> None:
    async def scene() -> None:
        ann, ben = users = await join_all(variant, (1, 2))
        for user in users:
            assert "permessage-deflate" in user.socket.response.headers["Sec-WebSocket-Extensions"]
        await ann.say(Send("channel3", TEXT, 77))
        heard, ack = await ben.hear(), (await ann.hear_all(Ack, 1))[0]
        assert heard == Message("channel3", "user1", ack.sequence, TEXT)
        assert ack.stamp == 77
        await ann.say(Ping(1))
        is_text = isinstance(await ann.hear_frame(), str)
        assert is_text == (variant.launch.settings["codec"] == "json")
        await ben.say(Send("channel3", "x" * 4000, 78))
        (heard,) = await ben.hear_all(Message, 1)
        assert heard == (await ann.hear_all(Message, 1))[0]
        assert (heard.sender, heard.sequence) == ("user2", ack.sequence + 1)
        await part(*users)

    run(scene())


def test_without_compression_none_is_negotiated(plain: Service) -> None:
    async def scene() -> None:
        user = await join(plain, 1)
        assert "Sec-WebSocket-Extensions" not in user.socket.response.headers
        await part(user)

    run(scene())
    shown = call(plain.port, "GET", "/settings").body
    assert (shown["deflate"], shown["bind"], len(shown["cores"])) == ("off", "on", 1)


def test_only_subscribers_hear_and_only_they_write(plain: Service) -> None:
    async def scene() -> None:
        ann, ben = users = await join_all(plain, (6, 7))
        await ben.say(Unsubscribe("channel2", 1))
        assert await ben.hear() == Ack(0, 1)
        await ben.say(Send("channel2", "let me", 2))
        refused = await ben.hear()
        assert (type(refused), refused.code, refused.stamp) == (Error, "not_subscribed", 2)
        await ann.say(Send("channel2", "unheard", 3))
        await ann.hear_all(Ack, 1)
        await ben.say(Subscribe("channel2", 4))
        assert await ben.hear() == Ack(0, 4)
        await ann.say(Send("channel2", "heard", 5))
        assert (await ben.hear()).text == "heard"
        await part(*users)

    run(scene())


def test_a_leave_is_remembered_until_the_next_reset(plain: Service) -> None:
    async def scene() -> None:
        user = await join(plain, 8)
        refused = call(plain.port, "POST", "/reset")
        assert (refused.status, refused.body["error"]["code"]) == (409, "under_way")
        await user.say(Unsubscribe("channel4", 0))
        await user.say(Send("channel0", "soon forgotten", 1))
        await user.hear_all(Ack, 2)
        await part(user)
        assert "channel4" not in log_in(plain, "user8").body["channels"]
        await until(lambda: counts(plain)["open"] == 0)
        assert call(plain.port, "POST", "/reset").status == 200
        assert "channel4" in log_in(plain, "user8").body["channels"]
        with contextlib.closing(sqlite3.connect(plain.data / "chat.sqlite")) as file:
            assert file.execute("SELECT count(*) FROM messages").fetchone() == (0,)
        assert counts(plain)["received"] == 0

    run(scene())


def test_a_pong_waits_its_turn_behind_the_messages_in_the_queue(plain: Service) -> None:
    async def scene() -> None:
        ann, monitor = users = await join_all(plain, (1, 2), compression=None, max_queue=None)
        for _ in range(500):
            await ann.say(Send("channel1", "x" * 1000, 0))
        await until(lambda: counts(plain)["received"] >= received + 500)
        await monitor.say(Ping(2))
        told = [type(await monitor.hear()) for _ in range(501)]
        assert told == [Message] * 500 + [Pong]
        await part(*users)

    received = counts(plain)["received"]
    run(scene())


def test_a_login_verifies_and_times_its_phases(started: Start) -> None:
    service = started("chat", cprofile="on")
    answer = log_in(service, "user499")
    assert answer.status == 200
    # A hash that takes no time was not computed.
    assert answer.phases["hash"] > 10
    parts = answer.phases["hash"] + answer.phases["store"]
    # On a busy machine time passes between the two.
    assert 0.7 * answer.phases["app"] < parts < 1.001 * answer.phases["app"]
    wrong = ("user499", PASSWORD + "!"), ("user499", "ü" * 500), ("user500", PASSWORD)
    for user, password in wrong:
        refused = log_in(service, user, password)
        assert (refused.status, refused.body["error"]["code"]) == (401, "wrong_login")
    assert call(service.port, "GET", "/settings").body["cprofile"] == "on"


@pytest.mark.parametrize("codec", CODECS)
def test_the_codec_benchmark_answers_with_one_unit(plain: Service, codec: str) -> None:
    path = f"/codec-bench?codec={codec}&message=chat&op=serialize&loops=100"
    answer = call(plain.port, "GET", path)
    assert answer.status == 200
    assert answer.phases["op"] * 1e3 == pytest.approx(answer.body["ns_per_op"], rel=1e-4)
    assert answer.body["bytes"] > 60
