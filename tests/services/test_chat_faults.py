"""Bad input and faults of the chat service: each is named, and nobody else suffers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
from typing import Any

import pytest
from chat.envelopes import Ack, Error, Message, Ping, Pong, Send
from chatting import (
    EASY,
    IMPLEMENTATIONS,
    User,
    address,
    join,
    join_all,
    part,
    run,
    until,
)
from running import Service, Start, call, counts
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

LARGE = "x" * 15_000
# Above what the service keeps for one connection, and what the kernel keeps for it.
MANY = 2_000


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def service(request: pytest.FixtureRequest, started: Start) -> Service:
    return started("chat", websocket=request.param, commit="write_behind", **EASY)


async def assert_alive(*users: User) -> None:
    """A ping, asked now, is answered after whatever came before."""
    for user in users:
        await user.say(Ping(4711))
        assert (await user.hear_all(Pong, 1))[0].stamp == 4711


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("", "bad_frame"),
        (
            '{"kind": "message", "channel": "a", "sender": "b", "sequence": 1, "text": "c"}',
            "bad_frame",
        ),
        ('{"kind": "send", "channel": "channel99", "text": "x", "stamp": 5}', "unknown_channel"),
        ('{"kind": "subscribe", "channel": "\\u0000", "stamp": 5}', "unknown_channel"),
    ],
    ids=["empty", "service's", "channel", "nul"],
)
def test_a_bad_frame_is_named_and_the_connection_lives(
    service: Service, frame: str | bytes, code: str
) -> None:
    async def scene() -> None:
        user = await join(service, 1)
        before = counts(service)["refused"].get(code, 0)
        await user.socket.send(frame)
        refused = await user.hear()
        assert (type(refused), refused.code) == (Error, code)
        assert refused.reason
        assert refused.stamp == (5 if code == "unknown_channel" else 0)
        assert counts(service)["refused"][code] == before + 1
        await assert_alive(user)
        await part(user)

    run(scene())


def test_a_frame_that_is_too_large_or_none_ends_its_connection_only(service: Service) -> None:
    async def scene() -> None:
        other, user, third = await join_all(service, (1, 2, 3))
        await user.socket.send("x" * 17_000)
        assert (await user.closed())[0] == 1009
        third.socket.transport.write(b"\xff\xff\xff\xff garbage on the wire")
        await third.closed()
        await until(lambda: counts(service)["open"] == 1)
        await assert_alive(other)
        await part(other)

    run(scene())


def test_a_user_without_a_valid_token_is_told_why(service: Service) -> None:
    async def scene() -> None:
        for token in ("", "x" * 32):
            async with connect(address(service.port, token)) as refused:
                with pytest.raises(ConnectionClosed):
                    await refused.recv()
                assert (refused.close_code, refused.close_reason) == (4401, "wrong_token")

    run(scene())


def test_a_slow_reader_is_closed_by_name_and_the_others_hear_everything(service: Service) -> None:
    async def flood(sender: User) -> None:
        """Read as well, so that the sender is no slow reader itself."""
        for number in range(MANY):
            await sender.say(Send("channel1", LARGE, number))
            await sender.hear_all(Ack, 1)

    async def scene() -> None:
        sender, healthy = await join_all(service, (1, 2), compression=None)
        slow = await join(service, 3, compression=None, max_queue=1, ping_interval=None)
        before = counts(service)
        _, heard = await asyncio.gather(flood(sender), healthy.hear_all(Message, MANY))
        assert {message.text for message in heard} == {LARGE}
        after = counts(service)
        refused = after["refused"]["slow_reader"] - before["refused"].get("slow_reader", 0)
        assert (refused, after["open"]) == (1, 2)
        assert await slow.closed() == (4408, "slow_reader")
        # What was delivered and what was dropped is what was sent while all three were there.
        dropped = after["dropped"] - before["dropped"]
        delivered = after["delivered"] - before["delivered"]
        assert dropped > 1000
        assert 2 * MANY + dropped < delivered + dropped <= 3 * MANY
        await part(sender, healthy)

    run(scene())


@pytest.mark.parametrize(
    "body",
    [
        {"user": "user1"},
        '{"user": "user1", "password": "\\ud800"}',
        "hush",
    ],
    ids=["half", "surrogate", "no json"],
)
def test_a_bad_login_is_named_and_not_quoted(service: Service, body: Any) -> None:
    answer = call(service.port, "POST", "/login", body)
    assert (answer.status, answer.body["error"]["code"]) == (422, "bad_request")
    assert "hush" not in str(answer.body)


def test_what_the_database_does_not_take_is_not_acknowledged(started: Start) -> None:
    service = started("chat", **EASY)

    async def scene() -> None:
        user = await join(service, 1)
        with contextlib.closing(sqlite3.connect(service.data / "chat.sqlite")) as other:
            other.execute("BEGIN IMMEDIATE")
            await user.say(Send("channel1", "x", 6))
            (refused,) = await user.hear_all(Error, 1)
            other.execute("ROLLBACK")
        assert (refused.code, refused.stamp) == ("not_stored", 6)
        assert "locked" in refused.reason
        await user.say(Send("channel1", "again", 7))
        assert (await user.hear_all(Ack, 1))[0].stamp == 7
        shown = counts(service)
        assert (shown["acknowledged"], shown["stored"], shown["not_stored"]) == (1, 1, 1)
        await part(user)

    run(scene())


async def talk(user: User, acknowledged: dict[int, str]) -> None:
    """Send in bursts without end, and note what was acknowledged, until the connection breaks."""
    with contextlib.suppress(ConnectionClosed, TimeoutError):
        for burst in range(10**6):
            texts = [f"{user.name} says {burst}.{number}" for number in range(10)]
            for number, text in enumerate(texts):
                await user.say(Send("channel1", text, number))
            for _ in texts:
                (ack,) = await user.hear_all(Ack, 1)
                acknowledged[ack.sequence] = texts[ack.stamp]


def stored(service: Service) -> dict[int, str]:
    with contextlib.closing(sqlite3.connect(service.data / "chat.sqlite")) as file:
        return dict(file.execute("SELECT sequence, text FROM messages").fetchall())


def test_no_acknowledged_message_is_lost_when_the_service_is_killed(started: Start) -> None:
    service = started("chat", **EASY)
    acknowledged: dict[int, str] = {}

    async def scene() -> str:
        users = await join_all(service, range(8), compression=None)
        talks = [asyncio.create_task(talk(user, acknowledged)) for user in users]
        while len(acknowledged) < 150:
            await asyncio.sleep(0.005)
        os.kill(service.instance.pid, signal.SIGKILL)
        await asyncio.gather(*talks)
        return users[0].token

    token = run(scene())
    assert "SIGKILL" in service.wait_ended()
    service.again().wait_healthy()
    assert acknowledged.items() <= stored(service).items()

    async def again() -> None:
        # The token is as safe as the messages.
        async with connect(address(service.port, token)):
            await until(lambda: counts(service)["open"] == 1)

    run(again())


def test_in_order_nothing_is_lost_even_if_it_is_written_behind(started: Start) -> None:
    service = started("chat", commit="write_behind", **EASY)

    async def scene() -> None:
        user = await join(service, 1)
        for number in range(20):
            await user.say(Send("channel1", str(number), number))
        await user.hear_all(Message, 20)
        os.kill(service.instance.pid, signal.SIGTERM)
        await user.closed()

    run(scene())
    assert service.wait_ended()
    assert sorted(map(int, stored(service).values())) == list(range(20))
