"""The chat service for real, spoken to by the client of the ``websockets`` package."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request

import pytest
from chat.envelopes import Ack, Error, Message, Ping, Pong, Send, Subscribe, Unsubscribe
from chatting import (
    CODECS,
    EASY,
    IMPLEMENTATIONS,
    PASSWORD,
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
from running import Answer, Service, Start, call
from websockets.asyncio.client import connect

TEXT = 'Grüße aus 東京 🙂 with a "quote" and a \\'
LOOPS = ("asyncio", "uvloop")
# Every codec once, every implementation of WebSockets and both loops among them.
VARIANTS = [
    (codec, IMPLEMENTATIONS[place % 3], LOOPS[place % 2]) for place, codec in enumerate(CODECS)
]


@pytest.fixture(scope="module", params=VARIANTS, ids=" ".join)
def variant(request: pytest.FixtureRequest, started: Start) -> Service:
    codec, implementation, loop = request.param
    return started("chat", codec=codec, websocket=implementation, loop=loop, **EASY)


@pytest.fixture(scope="module")
def plain(started: Start) -> Service:
    """The service without compression."""
    return started("chat", deflate="off", bind="on", **EASY)


@pytest.fixture(scope="module")
def bench(started: Start) -> Service:
    """The service with the codec benchmark in place of the chat."""
    return started("chat", benchmark="on", **EASY)


def get(service: Service, path: str, token: str) -> Answer:
    request = urllib.request.Request(
        f"http://127.0.0.1:{service.port}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return Answer(answer.status, json.loads(answer.read()), {})


def test_two_users_chat_through_every_codec_with_compression(variant: Service) -> None:
    async def scene() -> None:
        ann, ben = users = await join_all(variant, (1, 2))
        for user in users:
            assert "permessage-deflate" in user.socket.response.headers["Sec-WebSocket-Extensions"]
            assert [extension.name for extension in user.socket.protocol.extensions]
        await ann.say(Send("channel3", TEXT, 77))
        heard, ack = await ben.hear(), (await ann.hear_all(Ack, 1))[0]
        assert heard == Message("channel3", "user1", ack.sequence, TEXT)
        assert ack.stamp == 77
        await ben.say(Send("channel3", "x" * 4000, 78))
        (own,) = await ben.hear_all(Message, 1)
        assert own == (await ann.hear_all(Message, 1))[0]
        assert (own.sender, own.sequence) == ("user2", ack.sequence + 1)
        await part(*users)

    run(scene())


def test_frames_are_text_for_json_and_binary_for_the_others(variant: Service) -> None:
    async def scene() -> None:
        user = await join(variant, 1)
        await user.say(Ping(1))
        is_text = isinstance(await user.hear_frame(), str)
        assert is_text == (variant.launch.settings["codec"] == "json")
        await part(user)

    run(scene())


def test_it_says_what_really_runs(variant: Service) -> None:
    shown = call(variant.port, "GET", "/settings").body
    for name, value in variant.launch.settings.items():
        assert shown[name] == value, name
    loop = shown["loop_class"].split(".")[0]
    assert loop == variant.launch.settings["loop"]
    file = str(variant.launch.settings["websocket"]).replace("-", "_") + "_impl"
    assert file in shown["websocket_class"]
    assert shown["protobuf_backend"] == "upb"
    assert shown["sqlite"]["journal_mode"] == "wal"
    assert shown["versions"]["uvicorn"]
    assert shown["cores"] == list(variant.launch.cores)


def test_the_history_has_what_was_acknowledged(variant: Service) -> None:
    async def scene() -> None:
        user = await join(variant, 5)
        for number in range(7):
            await user.say(Send("channel5", f"number {number}", number))
        acks = await user.hear_all(Ack, 7)
        page = get(variant, "/history?channel=channel5&limit=5", user.token).body
        assert [each["text"] for each in page["messages"]] == [f"number {n}" for n in range(2, 7)]
        assert [each["sequence"] for each in page["messages"]] == [ack.sequence for ack in acks[2:]]
        await part(user)

    run(scene())


def test_without_compression_none_is_negotiated(plain: Service) -> None:
    async def scene() -> None:
        user = await join(plain, 1)
        assert "Sec-WebSocket-Extensions" not in user.socket.response.headers
        assert user.socket.protocol.extensions == []
        await part(user)

    run(scene())
    shown = call(plain.port, "GET", "/settings").body
    assert (shown["deflate"], shown["bind"], len(shown["cores"])) == ("off", "on", 1)


def test_json_is_what_a_browser_would_send_and_read(plain: Service) -> None:
    async def scene() -> None:
        token = log_in(plain, "user4").body["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        async with connect(
            f"ws://127.0.0.1:{plain.port}/ws", additional_headers=bearer, compression=None
        ) as socket:
            await socket.send('{"kind":"send","channel":"channel1","text":"hello"}')
            told = [json.loads(await socket.recv()) for _ in range(2)]
        assert told[0]["kind"] == "message"
        assert told[1] == {"kind": "ack", "sequence": told[0]["sequence"], "stamp": 0}

    run(scene())


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
        assert get(plain, "/channels", ben.token).body["subscribed"].count("channel2") == 1
        await part(*users)

    run(scene())


def test_a_leave_is_remembered_until_the_next_reset(plain: Service) -> None:
    async def scene() -> None:
        user = await join(plain, 8)
        assert call(plain.port, "POST", "/reset").body["error"]["code"] == "users_connected"
        await user.say(Unsubscribe("channel4", 0))
        await user.say(Send("channel0", "soon forgotten", 1))
        await user.hear_all(Ack, 2)
        await part(user)
        assert "channel4" not in log_in(plain, "user8").body["channels"]
        await until(lambda: counts(plain)["active_users"] == 0)
        assert call(plain.port, "POST", "/reset").status == 200
        answer = log_in(plain, "user8").body
        assert "channel4" in answer["channels"]
        assert get(plain, "/history?channel=channel0", answer["token"]).body["messages"] == []
        assert counts(plain)["received"] == 0

    run(scene())


def test_a_pong_tells_what_was_delivered_since_the_last_ping(plain: Service) -> None:
    async def scene() -> None:
        ann, monitor = users = await join_all(plain, (1, 2))
        await monitor.say(Ping(1))
        first = await monitor.hear()
        for _ in range(30):
            await ann.say(Send("channel1", "x", 0))
        await ann.hear_all(Ack, 30)
        await monitor.hear_all(Message, 30)
        await monitor.say(Ping(2))
        pong = await monitor.hear()
        assert (first.stamp, pong.stamp, pong.users, pong.messages) == (1, 2, 2, 60)
        assert pong.covered_ns > 0
        await part(*users)

    run(scene())


def test_a_pong_waits_its_turn_behind_the_messages_in_the_queue(plain: Service) -> None:
    async def scene() -> None:
        ann = await join(plain, 1, compression=None)
        monitor = await join(plain, 2, compression=None, max_queue=1, max_size=None)
        await flood(ann, 500)
        assert counts(plain)["queued"] > 10
        await monitor.say(Ping(2))
        told = [type(await monitor.hear()) for _ in range(501)]
        assert told == [Message] * 500 + [Pong]
        await part(ann, monitor)

    run(scene())


def test_counts_add_up(plain: Service) -> None:
    async def scene() -> None:
        before = counts(plain)
        users = await join_all(plain, (1, 2, 3))
        for user in users:
            await user.say(Send("channel9", "x", 0))
        for user in users:
            heard = await user.hear_all(Message, 3)
            assert {each.sender for each in heard} == {"user1", "user2", "user3"}
        await until(lambda: counts(plain)["stored"] == before["stored"] + 3)
        after = counts(plain)
        added = {name: after[name] - before[name] for name in ("received", "delivered", "logins")}
        assert added == {"received": 3, "delivered": 9, "logins": 3}
        assert after["acknowledged"] == before["acknowledged"] + 3
        assert after["active_users"] == 3
        assert after["cpu_s"] >= after["loop_cpu_s"] > before["loop_cpu_s"]
        await part(*users)

    run(scene())


def test_once_per_send_everyone_gets_the_same(started: Start) -> None:
    service = started("chat", serialize="per_send", codec="protobuf", **EASY)

    async def scene() -> None:
        users = await join_all(service, (1, 2, 3))
        await users[0].say(Send("channel1", TEXT, 0))
        heard = [(await user.hear_all(Message, 1))[0] for user in users]
        assert [each.text for each in heard] == [TEXT] * 3
        await part(*users)

    run(scene())


def test_by_default_a_message_reaches_nearly_two_thirds(started: Start) -> None:
    service = started("chat", login_hash="none", deflate="off", websocket="websockets-sansio")

    async def scene() -> None:
        users = await join_all(service, range(50))
        for channel in range(10):
            name = f"channel{channel}"
            for user in users:
                if name in user.channels:
                    await user.say(Send(name, "x", 0))
                    break
        await until(lambda: counts(service)["received"] == 10)
        await until(lambda: counts(service)["queued"] == 0)
        assert counts(service)["delivered"] == pytest.approx(10 * 0.64 * 50, rel=0.03)
        await part(*users)

    run(scene())


@pytest.mark.parametrize(("hashing", "where"), [("bcrypt", "loop"), ("argon2", "threads")])
def test_a_login_verifies_and_times_its_phases(started: Start, hashing: str, where: str) -> None:
    service = started("chat", login_hash=hashing, login_in=where)
    for user, password, status in (
        ("user499", PASSWORD, 200),
        ("user499", PASSWORD + "!", 401),
        ("user500", PASSWORD, 401),
    ):
        answer = log_in(service, user, password)
        assert answer.status == status
        assert {"hash", "store", "app"} == set(answer.phases)
        # A hash that takes no time was not computed, for an unknown name neither.
        assert answer.phases["hash"] > 10
        assert answer.phases["hash"] + answer.phases["store"] <= answer.phases["app"]
        if status == 401:
            assert answer.body["error"]["code"] == "wrong_login"


@pytest.mark.alone
def test_logins_in_threads_do_not_hold_up_the_loop(started: Start) -> None:
    took_s = {}
    for where in ("loop", "threads"):
        service = started("chat", login_hash="bcrypt", login_in=where, accounts=2)

        async def longest_wait(service: Service = service) -> float:
            loop = asyncio.get_running_loop()
            monitor = await join(service, 0)
            logins = [
                asyncio.create_task(asyncio.to_thread(log_in, service, "user1")) for _ in range(2)
            ]
            await asyncio.sleep(0.1)
            begin = loop.time()
            await monitor.say(Ping(1))
            await monitor.hear()
            waited = loop.time() - begin
            await asyncio.gather(*logins)
            await part(monitor)
            return waited

        took_s[where] = run(longest_wait())
        service.instance.stop()
    assert took_s["threads"] < 0.5 * took_s["loop"]


@pytest.mark.parametrize("message", ["published", "chat", "batch"])
@pytest.mark.parametrize("codec", CODECS)
def test_the_codec_benchmark_answers_with_one_unit(
    bench: Service, codec: str, message: str
) -> None:
    took: dict[str, float] = {}
    for operation in ("serialize", "deserialize", "serialize_values", "deserialize_values"):
        path = f"/codec-bench?codec={codec}&message={message}&op={operation}&loops=100"
        answer = call(bench.port, "GET", path)
        assert answer.status == 200
        assert answer.phases["op"] * 1e3 == pytest.approx(answer.body["ns_per_op"], rel=1e-4)
        assert answer.body["bytes"] > 60
        took[operation] = answer.body["ns_per_op"]
    assert took["serialize"] > 0
    assert took["deserialize"] > 0


@pytest.mark.parametrize(
    "query",
    [
        "codec=bson&message=chat&op=serialize",
        "codec=json&message=chat&op=serialize&loops=0",
        "codec=json&message=chat&op=fold",
        "codec=json",
        "codec=json&message=batch&op=deserialize_values&loops=10001",
    ],
)
def test_a_wrong_benchmark_is_refused_by_name(bench: Service, query: str) -> None:
    answer = call(bench.port, "GET", f"/codec-bench?{query}")
    assert (answer.status, answer.body["error"]["code"]) == (422, "bad_request")


def test_a_user_may_have_two_windows(plain: Service) -> None:
    async def scene() -> None:
        user = await join(plain, 1)
        async with connect(address(plain, user.token)) as second:
            await second.send('{"kind":"send","channel":"channel1","text":"from my other window"}')
            assert (await user.hear()).text == "from my other window"
        await part(user)

    run(scene())


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "html"), ("/page.css", "css"), ("/page.js", "javascript")]
)
def test_the_page_asks_nothing_of_any_other_place(plain: Service, path: str, kind: str) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{plain.port}{path}", timeout=10) as answer:
        text = answer.read().decode()
    assert (answer.status, answer.headers["Content-Type"]) == (200, f"text/{kind}; charset=utf-8")
    assert re.findall(r"//\w|@import|url\(|\bstyle=|\bon\w+=\"|innerHTML", text) == []
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert {policy[kind] for kind in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert policy["require-trusted-types-for"] == "'script'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
