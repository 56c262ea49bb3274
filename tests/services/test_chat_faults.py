"""Bad input and faults of the chat service: each is named, and nobody else suffers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sqlite3
import struct
import time
from typing import Any

import psutil
import pytest
from chat.envelopes import Ack, Error, Message, Ping, Pong, Send
from chatting import (
    EASY,
    IMPLEMENTATIONS,
    LARGE,
    PASSWORD,
    User,
    address,
    counts,
    flood,
    join,
    join_all,
    log_in,
    part,
    run,
    until,
)
from running import Service, Start, call
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

SMALL_QUEUE = 40


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def service(request: pytest.FixtureRequest, started: Start) -> Service:
    return started("chat", websocket=request.param, send_queue=SMALL_QUEUE, keepalive_s=1.0, **EASY)


def pid(service: Service) -> int:
    return next(
        child.pid
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE
        and child.environ().get("PERFLAB_PORT") == str(service.port)
    )


async def assert_alive(*users: User) -> None:
    """A ping, asked now, is answered after whatever came before."""
    for user in users:
        await user.say(Ping(4711))
        assert (await user.hear_all(Pong, 1))[0].stamp == 4711


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("", "bad_frame"),
        ("no json", "bad_frame"),
        (b"\xff\xfe\x00", "bad_frame"),
        ("[" * 15_000, "bad_frame"),
        (
            '{"kind": "message", "channel": "a", "sender": "b", "sequence": 1, "text": "c"}',
            "bad_frame",
        ),
        ('{"kind": "send", "channel": "channel1", "text": "\\ud800"}', "bad_frame"),
        ('{"kind": "send", "channel": "channel99", "text": "x", "stamp": 5}', "unknown_channel"),
        ('{"kind": "subscribe", "channel": "\\u0000", "stamp": 5}', "unknown_channel"),
        ('{"kind": "send", "channel": "channel1", "text": "' + "x" * 17_000 + '"}', "too_large"),
    ],
    ids=[
        "empty",
        "no json",
        "no text",
        "deep",
        "service's",
        "surrogate",
        "channel",
        "nul",
        "large",
    ],
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


def test_a_far_too_large_frame_ends_its_connection_only(service: Service) -> None:
    async def scene() -> None:
        other, user = await join_all(service, (1, 2))
        await user.socket.send("x" * 40_000)
        assert (await user.closed())[0] == 1009
        await assert_alive(other)
        await part(other)

    run(scene())


def test_what_is_no_websocket_frame_ends_its_connection_only(service: Service) -> None:
    async def scene() -> None:
        other, user = await join_all(service, (1, 2))
        user.socket.transport.write(b"\xff\xff\xff\xff garbage on the wire")
        await user.closed()
        await until(lambda: counts(service)["active_users"] == 1)
        await assert_alive(other)
        await part(other)

    run(scene())


def test_a_user_without_a_valid_token_is_told_why(service: Service) -> None:
    async def scene() -> None:
        for token, reason in (("", "missing_token"), ("x" * 32, "wrong_token")):
            async with connect(address(service, token)) as refused:
                with pytest.raises(ConnectionClosed):
                    await refused.recv()
                assert (refused.close_code, refused.close_reason) == (4401, reason)

    run(scene())


def test_a_user_who_vanishes_is_gone_for_the_others_too(service: Service) -> None:
    async def scene() -> None:
        other, aborted = await join_all(service, (1, 2))
        # RST instead of a close frame or FIN.
        raw = aborted.socket.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        aborted.socket.transport.abort()
        await until(lambda: counts(service)["active_users"] == 1)
        await other.say(Send("channel1", "anyone?", 0))
        await other.hear_all(Ack, 1)
        await assert_alive(other)
        await part(other)

    run(scene())


def open_silent(service: Service) -> socket.socket:
    """Connect by hand as someone who will never answer anything, a ping neither."""
    token = log_in(service, "user3").body["token"]
    silent = socket.create_connection(("127.0.0.1", service.port))
    silent.sendall(
        f"GET /ws?token={token} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert silent.recv(4096).startswith(b"HTTP/1.1 101")
    return silent


def test_a_user_who_falls_silent_is_noticed_by_keepalive(service: Service) -> None:
    with open_silent(service):
        assert counts(service)["active_users"] == 1
        # Within ten times `keepalive_s`; nothing else would notice so soon.
        run(until(lambda: counts(service)["active_users"] == 0))


async def hear_texts(user: User, number: int) -> None:
    assert {each.text for each in await user.hear_all(Message, number)} == {LARGE}


def test_a_slow_reader_is_closed_by_name_and_the_others_hear_everything(service: Service) -> None:
    async def scene() -> None:
        sender, healthy = await join_all(service, (1, 2), compression=None)
        slow = await join(service, 3, compression=None, max_queue=1, ping_interval=None)
        process = psutil.Process(pid(service))
        before, rss = counts(service), process.memory_info().rss
        await asyncio.gather(flood(sender, 700), hear_texts(healthy, 700))
        after = counts(service)
        assert after["slow_readers"] == before["slow_readers"] + 1
        assert after["dropped"] >= before["dropped"] + SMALL_QUEUE
        assert after["active_users"] == 2
        # 700 messages are 10 MB; only a full queue of them may have been held.
        assert process.memory_info().rss - rss < 8e6
        assert await slow.closed() == (4408, "slow_reader")
        await part(sender, healthy)

    run(scene())


def test_a_reader_who_never_comes_back_is_cut_off(service: Service) -> None:
    async def scene() -> None:
        sender = await join(service, 1, compression=None)
        with open_silent(service) as silent:
            port = silent.getsockname()[1]
            await flood(sender, 700)
            await until(lambda: counts(service)["active_users"] == 1)
            process = psutil.Process(pid(service))
            await until(
                lambda: (
                    port
                    not in {each.raddr.port for each in process.net_connections() if each.raddr}
                )
            )
        await assert_alive(sender)
        await part(sender)

    run(scene())


def test_nothing_is_left_of_those_who_left(service: Service) -> None:
    async def scene() -> None:
        await until(lambda: counts(service)["active_users"] == 0)
        before = counts(service)["tasks"]
        users = await join_all(service, range(10))
        assert counts(service)["tasks"] >= before + 10
        for user in users[::2]:
            user.socket.transport.abort()
        await part(*users[1::2])
        await until(lambda: counts(service)["tasks"] <= before)

    run(scene())


def test_an_expired_token_is_told_from_a_wrong_one(started: Start) -> None:
    brief = started("chat", token_ttl_s=1, **EASY)
    token = log_in(brief, "user1").body["token"]
    time.sleep(1.1)

    async def scene() -> None:
        async with connect(address(brief, token)) as refused:
            with pytest.raises(ConnectionClosed):
                await refused.recv()
            assert (refused.close_code, refused.close_reason) == (4401, "expired_token")

    run(scene())


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"user": "user1", "password": "guess"}, 401, "wrong_login"),
        ({"user": "nobody", "password": PASSWORD}, 401, "wrong_login"),
        ({"user": "user1"}, 422, "bad_request"),
        ({"user": "user1", "password": ["hush"]}, 422, "bad_request"),
        ('{"user": "user1", "password": "\\ud800"}', 422, "bad_request"),
        ("hush", 422, "bad_request"),
    ],
    ids=["password", "user", "half", "type", "surrogate", "no json"],
)
def test_a_bad_login_is_named_and_not_quoted(
    service: Service, body: Any, status: int, code: str
) -> None:
    answer = call(service.port, "POST", "/login", body)
    assert (answer.status, answer.body["error"]["code"]) == (status, code)
    assert "hush" not in str(answer.body)


def test_the_history_wants_a_token_and_a_channel_that_exists(service: Service) -> None:
    answer = call(service.port, "GET", "/history?channel=channel1")
    assert (answer.status, answer.body["error"]["code"]) == (401, "missing_token")


@pytest.mark.parametrize("commit", ["each", "batched"])
def test_what_the_database_does_not_take_is_not_acknowledged(started: Start, commit: str) -> None:
    service = started("chat", commit=commit, **EASY)

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
    """Read the history from the file itself; the service's endpoint gives pages."""
    with contextlib.closing(sqlite3.connect(service.data / "chat.sqlite")) as file:
        return dict(file.execute("SELECT sequence, text FROM messages").fetchall())


def kill_amid_talk(service: Service) -> tuple[dict[int, str], str]:
    """Kill the service while eight users talk; return what it acknowledged, and a token."""
    acknowledged: dict[int, str] = {}

    async def scene() -> str:
        users = await join_all(service, range(8), compression=None)
        talks = [asyncio.create_task(talk(user, acknowledged)) for user in users]
        while len(acknowledged) < 150:
            await asyncio.sleep(0.005)
        os.kill(pid(service), signal.SIGKILL)
        await asyncio.gather(*talks)
        return users[0].token

    token = run(scene())
    assert "SIGKILL" in service.wait_ended()
    return acknowledged, token


@pytest.mark.parametrize("commit", ["each", "batched"])
def test_no_acknowledged_message_is_lost_when_the_service_is_killed(
    started: Start, commit: str
) -> None:
    # Batches wait so long that an ack before the commit would be caught.
    service = started("chat", commit=commit, **{**EASY, "batch_interval_ms": 50})
    acknowledged, token = kill_amid_talk(service)
    service.again().wait_healthy()
    kept = stored(service)
    assert len(acknowledged) >= 150
    assert acknowledged.items() <= kept.items()
    # The token is as safe as the messages.
    assert run(next_sequence(service, token)) > max(kept)


async def next_sequence(service: Service, token: str) -> int:
    """Say something and return the sequence that it got."""
    async with connect(address(service, token)) as again:
        await again.send('{"kind": "send", "channel": "channel1", "text": "back"}')
        heard = [json.loads(await again.recv()) for _ in range(2)]
        return int(next(each["sequence"] for each in heard if each["kind"] == "message"))


def test_write_behind_loses_what_it_had_not_written(started: Start) -> None:
    late = {**EASY, "batch_interval_ms": 60_000, "batch_size": 100_000}
    service = started("chat", commit="write_behind", **late)
    acknowledged, _ = kill_amid_talk(service)
    assert len(acknowledged) >= 150
    assert stored(service) == {}
    # Nobody may see a sequence again that stood for another message before.
    service.again().wait_healthy()
    token = log_in(service, "user1").body["token"]
    assert run(next_sequence(service, token)) > max(acknowledged)


def test_in_order_nothing_is_lost_however_it_commits(started: Start) -> None:
    for commit in ("batched", "write_behind"):
        late = {**EASY, "batch_interval_ms": 60_000, "batch_size": 100_000}
        service = started("chat", commit=commit, **late)

        async def scene(service: Service = service) -> None:
            user = await join(service, 1)
            for number in range(20):
                await user.say(Send("channel1", str(number), number))
            await user.hear_all(Message, 20)
            os.kill(pid(service), signal.SIGTERM)
            await user.closed()

        run(scene())
        assert service.wait_ended()
        assert sorted(map(int, stored(service).values())) == list(range(20))
