"""What somebody without a login can do to the chat service: nothing that its users notice."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chat.refusal import TooManyLogins
from chat.suspicion import MOST_WAITING, NICENESS, Suspicion
from chatting import EASY, IMPLEMENTATIONS, counts, join, log_in, part, run
from running import Service, Start, call, wait_until

ATTACKERS = 8
ATTACK_S = 3.0
PATIENCE_S = 1.0
SLOW_HASH = {**EASY, "login_hash": "bcrypt", "bcrypt_rounds": 12}


@pytest.fixture(scope="module")
def plain(started: Start) -> Service:
    return started("chat", patience_s=PATIENCE_S, **EASY)


@pytest.fixture(scope="module")
def slow_hash(started: Start) -> Service:
    return started("chat", **SLOW_HASH)


def send(service: Service, path: str, **headers: str) -> int:
    """POST with these headers and return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
    with contextlib.closing(connection):
        connection.request(
            "POST", path, b"{}", {k.replace("_", "-"): v for k, v in headers.items()}
        )
        return connection.getresponse().status


def test_a_chat_has_no_codec_benchmark(plain: Service) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(
            f"http://127.0.0.1:{plain.port}/codec-bench?codec=json&message=chat&op=serialize"
        )


@pytest.mark.parametrize("path", ["/", "/login", "/channels", "/ws"])
def test_where_the_benchmark_runs_there_is_no_chat(started: Start, path: str) -> None:
    bench = started("chat", benchmark="on", **EASY)
    assert call(bench.port, "POST" if path == "/login" else "GET", path).status == 404
    bench.instance.stop()


JSON = {"Content_Type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (JSON, 200),
        ({"Content_Type": "application/json; charset=utf-8", "Sec_Fetch_Site": "same-origin"}, 200),
        ({}, 403),
        ({"Content_Type": "text/plain"}, 403),
        ({**JSON, "Sec_Fetch_Site": "cross-site"}, 403),
        ({**JSON, "Sec_Fetch_Site": "same-site"}, 403),
        ({**JSON, "Origin": "http://evil.example"}, 403),
        ({**JSON, "Origin": "null"}, 403),
        ({**JSON, "Origin": "http://127.0.0.1:1"}, 403),
        ({**JSON, "Host": "evil.example"}, 403),
        ({**JSON, "Host": "evil.example:80", "Origin": "http://evil.example:80"}, 403),
    ],
    ids=lambda each: (
        ",".join(f"{k}={v}" for k, v in each.items()) if isinstance(each, dict) else ""
    ),
)
def test_only_its_own_page_or_a_program_can_reset_it(
    plain: Service, headers: dict[str, str], status: int
) -> None:
    log_in(plain, "user1")
    assert send(plain, "/reset", **headers) == status
    assert counts(plain)["logins"] == (0 if status == 200 else counts(plain)["logins"] or 1)


@pytest.mark.parametrize(
    "headers", [{"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"}, {"Host": "evil.example"}]
)
def test_another_page_cannot_try_logins(plain: Service, headers: dict[str, str]) -> None:
    body = {"user": "user1", "password": "correct horse"}
    given = {k.replace("_", "-"): v for k, v in {**JSON, **headers}.items()}
    connection = http.client.HTTPConnection("127.0.0.1", plain.port, timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", "/login", str(body).replace("'", '"'), given)
        assert connection.getresponse().status == 403


@contextlib.contextmanager
def under_attack(service: Service) -> Iterator[list[int]]:
    """Eight wrong logins at a time, of users who are there and of some who are not."""
    statuses: list[int] = []
    ended = threading.Event()

    def attack(number: int) -> None:
        while not ended.is_set():
            statuses.append(log_in(service, f"user{number * 3}", "guess").status)

    threads = [threading.Thread(target=attack, args=(number,)) for number in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.alone
@pytest.mark.slow
def test_wrong_logins_hold_nobody_up(slow_hash: Service) -> None:
    # The first may hold others up once, as every login does where they are verified in the loop.
    first = log_in(slow_hash, "user1", "guess")
    hash_s = first.phases["hash"] / 1e3
    took_s = []
    with under_attack(slow_hash) as statuses:
        deadline = time.monotonic() + ATTACK_S
        while time.monotonic() < deadline:
            begin = time.monotonic()
            assert call(slow_hash.port, "GET", "/health").status == 200
            took_s.append(time.monotonic() - begin)
            time.sleep(0.02)
        # Who has the right password gets in meanwhile.
        assert log_in(slow_hash, "user2").status == 200
    assert len(statuses) >= ATTACKERS
    assert set(statuses) == {401}
    assert sorted(took_s)[len(took_s) // 2] < hash_s / 3
    # One at a time would wait for all of them.
    assert max(took_s) < ATTACKERS / 2 * hash_s


@pytest.mark.slow
def test_right_logins_are_verified_as_the_setting_says(started: Start) -> None:
    service = started("chat", **SLOW_HASH)
    before = counts(service)
    for number in range(3):
        assert log_in(service, f"user{number}").status == 200
    after = counts(service)
    in_loop_s = after["loop_cpu_s"] - before["loop_cpu_s"]
    assert in_loop_s > 0.9 * (after["cpu_s"] - before["cpu_s"])
    assert log_in(service, "user1", "guess").status == 401
    middle = counts(service)
    assert log_in(service, "user1").status == 200
    end = counts(service)
    assert end["loop_cpu_s"] - middle["loop_cpu_s"] < 0.5 * (end["cpu_s"] - middle["cpu_s"])
    service.instance.stop()


def test_a_reset_forgets_that_logins_were_wrong(started: Start) -> None:
    service = started("chat", **SLOW_HASH)
    assert call(service.port, "POST", "/login", {"user": "user0", "password": "no"}).status == 401
    assert send(service, "/reset", Content_Type="application/json") == 200
    before = counts(service)
    log_in(service, "user0")
    after = counts(service)
    # On the event loop's own thread, where the setting wants it.
    in_loop = after["loop_cpu_s"] - before["loop_cpu_s"]
    assert in_loop > 0.8 * (after["cpu_s"] - before["cpu_s"])


def test_few_wait_to_be_verified_and_the_thread_gives_way() -> None:
    go, priorities = threading.Event(), []

    def verify(_: str, password: str) -> bool:
        go.wait(10)
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return password == "right"

    async def scene() -> None:
        suspicion = Suspicion()
        assert not suspicion.is_roused
        suspicion.rouse()
        assert suspicion.is_roused
        waiting = [
            asyncio.create_task(suspicion.verify(verify, "", "right" if number == 5 else "wrong"))
            for number in range(MOST_WAITING)
        ]
        await asyncio.sleep(0)
        with pytest.raises(TooManyLogins):
            await suspicion.verify(verify, "", "right")
        go.set()
        answers = await asyncio.gather(*waiting)
        assert [number for number, right in enumerate(answers) if right] == [5]
        assert await suspicion.verify(verify, "", "right")
        suspicion.close()

    run(scene())
    assert set(priorities) == {NICENESS}
    assert os.getpriority(os.PRIO_PROCESS, 0) < NICENESS


HEAD = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
ASK = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def ask_half_of_a_second_time(peer: socket.socket) -> None:
    peer.sendall(ASK)
    assert peer.recv(1000).startswith(b"HTTP/1.1 200")
    peer.sendall(HEAD)


def ask_much_and_read_nothing(peer: socket.socket) -> None:
    peer.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        for _ in range(10_000):
            peer.sendall(ASK.replace(b"/health", b"/page.js") * 100)


MUTE: dict[str, Callable[[socket.socket], object]] = {
    "says nothing": lambda _: None,
    "says half of what it wants": lambda peer: peer.sendall(HEAD),
    "announces a body": lambda peer: peer.sendall(HEAD + b"Content-Length: 100\r\n\r\n{"),
    "falls silent in its second request": ask_half_of_a_second_time,
    "does not read": ask_much_and_read_nothing,
}


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", MUTE)
def test_a_connection_that_gives_not_what_it_owes_is_cut(plain: Service, behaviour: str) -> None:
    before = counts(plain)["refused"].get("mute", 0)
    with socket.socket() as peer:
        # Little is on the way to one who does not read.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", plain.port))
        MUTE[behaviour](peer)
        # Otherwise it is kept for ever; on a busy machine one who does not read costs seconds.
        wait_until(lambda: counts(plain)["refused"].get("mute", 0) == before + 1, timeout_s=40)
        wait_until(lambda: is_over(plain, peer), timeout_s=20)


def is_over(service: Service, peer: socket.socket) -> bool:
    """Whether the kernel has no connection of this peer any more on the service's side."""
    own = f":{peer.getsockname()[1]:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return not any(
        words[1].endswith(f":{service.port:04X}") and words[2].endswith(own) and words[3] == "01"
        for words in lines
    )


def test_a_user_who_says_nothing_stays(plain: Service) -> None:
    async def scene() -> None:
        user = await join(plain, 1)
        await asyncio.sleep(3 * PATIENCE_S)
        assert counts(plain)["active_users"] == 1
        await part(user)

    run(scene())


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_who_has_no_token_and_does_not_leave_is_cut(started: Start, implementation: str) -> None:
    service = started("chat", websocket=implementation, **EASY)
    with socket.create_connection(("127.0.0.1", service.port)) as peer:
        peer.sendall(
            b"GET /ws?token=guess HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        wait_until(lambda: is_over(service, peer), timeout_s=5)
    service.instance.stop()
