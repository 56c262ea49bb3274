"""The metricstream server over real sockets: correct HTTP, hostile clients, and bounds.

Every promise is looked at under each of the four ways in which its threads share the work.
"""

from __future__ import annotations

import resource
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from running import Service, Start, call, wait_until
from speaking import Speaker, batch, chunked, get, post, speaking

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

THREADINGS = ["thread", "producer_consumer", "pool", "epoll"]
TIMEOUT_MS = 700
MAX_CONNECTIONS = 40
READ_AT_ONCE = 16_384
STORES = {
    "thread": "double_mutex",
    "producer_consumer": "ring",
    "pool": "per_client",
    "epoll": "ring",
}


@pytest.fixture(scope="module", params=THREADINGS)
def server(request: pytest.FixtureRequest, started: Start) -> Iterator[Service]:
    """A server of each kind, its bounds small enough to be met."""
    settings = {
        "threading": request.param, "store": STORES[request.param], "threads": 2,
        "keep_alive": "on", "request_timeout_ms": TIMEOUT_MS, "max_connections": MAX_CONNECTIONS,
        "max_head_bytes": 1024, "max_body_bytes": 2048,
    }  # fmt: skip
    service = started("metricstream", **settings)
    yield service
    assert not service.instance.exit_reason(), service.instance.log()


def counts(service: Service) -> dict[str, int]:
    found: dict[str, int] = call(service.port, "GET", "/counts").body
    return found


def open_at(service: Service) -> int | None:
    """Return how many connections are open, the one that asks too; None where it is turned away."""
    return counts(service).get("open_connections")


def is_alive(service: Service) -> bool:
    with speaking(service.port, post(batch("alive", 1))) as speaker:
        return speaker.reply().status == 202


def test_samples_are_stored_and_counted_and_forgotten(server: Service) -> None:
    assert call(server.port, "POST", "/reset").status == 200
    with speaking(server.port, post(batch("a", 1, 2)) + post(batch("b", 3))) as speaker:
        assert [speaker.reply().body for _ in range(2)] == [{"accepted": 2}, {"accepted": 1}]
    wait_until(lambda: counts(server)["samples_stored"] == 3, timeout_s=10)
    assert {name: counts(server)[name] for name in ("samples_taken", "series")} == {
        "samples_taken": 3,
        "series": 2,
    }
    call(server.port, "POST", "/reset")
    assert {counts(server)[name] for name in ("samples_taken", "samples_stored", "series")} == {0}


def test_an_answer_tells_its_phases_and_the_settings_are_told(server: Service) -> None:
    answer = call(server.port, "POST", "/metrics", batch("a", 1).decode())
    assert list(answer.phases) == ["taken", "parse", "lock", "store"]
    assert all(duration >= 0 for duration in answer.phases.values())
    shown = call(server.port, "GET", "/settings").body
    wanted = server.launch.settings
    # Nothing but settings: a port is another after every start, and would pass for a change.
    assert shown == dict(wanted)


def test_requests_sent_at_once_are_answered_in_their_order(server: Service) -> None:
    sent = [post(batch("a", *range(count))) if count % 2 else get("/health") for count in range(40)]
    with speaking(server.port, b"".join(sent)) as speaker:
        bodies = [speaker.reply().body for _ in sent]
    assert bodies == [{"accepted": count} if count % 2 else {"status": "ok"} for count in range(40)]


def test_a_request_is_the_same_however_its_bytes_come(server: Service) -> None:
    body = batch("a", 1, 2)
    request = post(body) + chunked(body[:5], body[5:], trailer=b"X: y\r\n") + get("/health")
    with speaking(server.port) as speaker:
        for at in range(len(request)):
            speaker.say(request[at : at + 1])
        assert [speaker.reply().status for _ in range(3)] == [202, 202, 200]


def test_requests_that_just_fill_what_is_read_at_once_are_all_answered(server: Service) -> None:
    plain = post(batch("a", 1), "X: ")
    padded = post(batch("a", 1), "X: " + "a" * (512 - len(plain)))
    # The server reads 16 KiB at a time.
    for count in (31, 32, 33, 64):
        with speaking(server.port, padded * count) as speaker:
            assert [speaker.reply().status for _ in range(count)] == [202] * count


def test_a_client_that_waits_for_the_word_gets_it_once(server: Service) -> None:
    body = batch("a", 1)
    whole = post(body, "Expect: 100-continue")
    with speaking(server.port, whole[: -len(body)]) as speaker:
        assert speaker.reply().status == 100
        speaker.say(body)
        assert speaker.reply().status == 202
        speaker.say(post(b"x" * 3000, "Expect: 100-continue")[:-3000])
        assert speaker.reply().status == 413, "no word for a body that is too long"
    with speaking(server.port, post(body, "Expect: a-miracle")) as speaker:
        assert speaker.reply().status == 417


def test_the_client_may_end_the_connection_or_half_of_it(server: Service) -> None:
    with speaking(server.port, get("/health", "Connection: close")) as speaker:
        assert speaker.reply().headers["connection"] == "close"
        assert speaker.is_closed()
    with speaking(server.port, b"GET /health HTTP/1.0\r\n\r\n") as speaker:
        assert speaker.reply().status == 200
        assert speaker.is_closed()
    with speaking(
        server.port, b"HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n" + get("/health")
    ) as speaker:
        assert int(speaker.reply(has_body=False).headers["content-length"]) > 0
        assert speaker.reply().body == {"status": "ok"}
    with speaking(server.port, post(batch("a", 1))) as speaker:
        speaker.socket.shutdown(socket.SHUT_WR)
        assert speaker.reply().status == 202
        assert speaker.is_closed()


HEAD = b"POST /metrics HTTP/1.1\r\nHost: a\r\n"
REFUSED = {
    "two lengths": (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
    "the same length twice": (HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
    "a list of lengths": (HEAD + b"Content-Length: 5, 5\r\n\r\nhello", 400),
    "length and coding": (
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
    ),
    "two codings": (HEAD + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n", 400),
    "another coding": (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
    "coding in 1.0": (
        b"POST /metrics HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
    ),
    "a length with a sign": (HEAD + b"Content-Length: +5\r\n\r\nhello", 400),
    "a length beyond all numbers": (HEAD + b"Content-Length: 99999999999999999999\r\n\r\n", 413),
    "a space before the colon": (HEAD + b"Content-Length : 5\r\n\r\nhello", 400),
    "a folded line": (HEAD + b"X: a\r\n b\r\n\r\n", 400),
    "a bare line feed": (HEAD + b"X: a\nContent-Length: 5\r\n\r\n", 400),
    "a zero byte": (HEAD + b"X: \x00\r\n\r\n", 400),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "another protocol": (b"GET /health HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    "no protocol": (b"GET /health\r\n\r\n", 400),
    "no request": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "a head too long": (HEAD + b"X: " + b"a" * 2000 + b"\r\n\r\n", 431),
    "a head without an end": (b"GET /" + b"a" * 5000, 431),
    "a body too long": (post(b"a" * 2049), 413),
    "chunks too long": (chunked(b"a" * 1500, b"a" * 1500), 413),
    "a chunk's length beyond all numbers": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", 413,
    ),
    "a chunk's length that is none": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
    "a chunk longer than it says": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", 400),
}  # fmt: skip


def test_what_two_readers_could_understand_differently_ends_the_connection(server: Service) -> None:
    hidden = get("/counts")
    said = {}
    for name, (request, _) in REFUSED.items():
        with speaking(server.port, request + hidden) as speaker:
            said[name] = (speaker.reply().status, speaker.is_closed())
    assert said == {name: (status, True) for name, (_, status) in REFUSED.items()}
    assert is_alive(server)


def test_a_wrong_body_is_answered_and_the_connection_goes_on(server: Service) -> None:
    wrong = [b"", b"{", b"[1]", b'{"client": "a", "metrics": [{"name": "m", "value": 1e999}]}',
             b'{"client": 1, "metrics": []}', b"\xff\xfe"]  # fmt: skip
    with speaking(server.port) as speaker:
        for body in wrong:
            speaker.say(post(body))
            reply = speaker.reply()
            assert (reply.status, list(reply.body)) == (400, ["error"])
        speaker.say(post(batch(), path="/nowhere") + b"DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        assert [speaker.reply().status for _ in range(2)] == [404, 405]
        speaker.say(post(batch("a", 1)))
        assert speaker.reply().status == 202


def test_slow_clients_are_told_so_and_others_served_meanwhile(server: Service) -> None:
    begun = [Speaker(server.port) for _ in range(8)]
    for number, speaker in enumerate(begun):
        speaker.say(post(batch("slow", 1))[: 20 + 10 * number])
    assert is_alive(server), "more slow clients than threads"
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while time.monotonic() < deadline:
        # One byte after the other is no progress that counts.
        for speaker in begun:
            speaker.say(b"a")
        time.sleep(TIMEOUT_MS / 5000)
        if any(ended(speaker) for speaker in begun):
            break
    for speaker in begun:
        assert speaker.reply().status in (400, 408)
        speaker.socket.close()
    assert is_alive(server)


def ended(speaker: Speaker) -> bool:
    speaker.socket.setblocking(False)
    try:
        return bool(speaker.socket.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        speaker.socket.settimeout(20)


def test_who_does_not_read_its_answers_is_cut_and_bounded(server: Service) -> None:
    before = counts(server)["timeouts"]
    with speaking(server.port) as speaker:
        speaker.socket.settimeout(0.2)
        with pytest.raises((TimeoutError, ConnectionError)):
            speaker.say(get("/settings") * 1_000_000)
        wait_until(lambda: counts(server)["timeouts"] > before, timeout_s=20)
    assert psutil.Process(server.instance.pid).memory_info().rss < 64 * 1024 * 1024


def test_connections_beyond_the_bound_are_turned_away_and_those_within_go_on(
    server: Service,
) -> None:
    wait_until(lambda: open_at(server) == 1, timeout_s=10)
    within = [Speaker(server.port) for _ in range(MAX_CONNECTIONS - 2)]
    wait_until(lambda: open_at(server) == MAX_CONNECTIONS - 1, timeout_s=10)
    beyond = [Speaker(server.port) for _ in range(10)]
    within[0].say(post(batch("a", 1)))
    assert within[0].reply().status == 202
    assert [speaker.reply().status for speaker in beyond[2:]] == [503] * 8
    for speaker in within + beyond:
        speaker.socket.close()
    wait_until(lambda: open_at(server) == 1, timeout_s=10)
    assert is_alive(server)


def test_resets_amid_requests_and_answers_leave_nothing_behind(server: Service) -> None:
    at_once = struct.pack("ii", 1, 0)
    for number in range(30):
        speaker = Speaker(server.port)
        speaker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        speaker.say((post(batch("a", 1)) * 5)[: 40 * number + 1])
        speaker.socket.close()
    wait_until(lambda: open_at(server) == 1, timeout_s=10)
    assert is_alive(server)


def test_a_server_without_descriptors_turns_clients_away_and_lives(server: Service) -> None:
    wait_until(lambda: open_at(server) == 1, timeout_s=10)
    pid = server.instance.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    with speaking(server.port, get("/health")) as kept:
        assert kept.reply().status == 200
        highest = max(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir())
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 1, before[1]))
        more = [Speaker(server.port) for _ in range(20)]
        try:
            for speaker in more:
                speaker.say(get("/health"))
            said = [speaker.reply().status for speaker in more]
            kept.say(get("/counts"))
            assert kept.reply().body["no_descriptor"] == said.count(503) >= 10
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            for speaker in more:
                speaker.socket.close()
    assert is_alive(server)


@pytest.mark.parametrize("threading", THREADINGS)
def test_a_server_that_is_told_to_end_answers_what_it_has_in_hand(
    started: Start, threading: str
) -> None:
    service = started("metricstream", threading=threading, keep_alive="on", threads=2)
    request = post(batch("a", 1))
    idle, busy = Speaker(service.port), Speaker(service.port)
    idle.say(get("/health"))
    assert idle.reply().status == 200
    busy.say(request[:-5])
    wait_until(lambda: open_at(service) == 3, timeout_s=10)
    service.instance._child.send_signal(signal.SIGTERM)
    assert idle.is_closed()
    busy.say(request[-5:])
    reply = busy.reply()
    assert (reply.status, reply.headers["connection"]) == (202, "close")
    assert busy.is_closed()
    assert service.wait_ended() == "ended with exit status 0"


def test_keep_alive_is_off_or_limited_as_it_was_asked_for(started: Start) -> None:
    off = started("metricstream", keep_alive="off")
    with speaking(off.port, get("/health")) as speaker:
        assert speaker.reply().headers["connection"] == "close"
        assert speaker.is_closed()
    limited = started(
        "metricstream", keep_alive="limited", keep_alive_requests=3, keep_alive_idle_ms=300,
        threading="epoll",
    )  # fmt: skip
    with speaking(limited.port, get("/health") * 3) as speaker:
        said = [speaker.reply().headers["connection"] for _ in range(3)]
        assert said == ["keep-alive", "keep-alive", "close"]
        assert speaker.is_closed()
    with speaking(limited.port, get("/health")) as speaker:
        speaker.reply()
        assert speaker.is_closed(), "idle for too long"


@pytest.mark.parametrize("threading", THREADINGS)
def test_the_last_answer_is_whole_though_the_client_has_sent_on(
    started: Start, threading: str
) -> None:
    limited = started(
        "metricstream", threading=threading, threads=2, keep_alive="limited",
        keep_alive_requests=2, max_head_bytes=32_768,
    )  # fmt: skip
    # Both just fill what is read at once: a third request is still the kernel's when that of the
    # last answer was read, and to close on it would reset the connection.
    first = post(batch("a", 1), f"X: {'a' * 1000}")
    plain = post(batch("a", 1), "X: ")
    second = post(batch("a", 1), "X: " + "a" * (READ_AT_ONCE - len(first) - len(plain)))
    with speaking(limited.port, first + second + post(batch("a", 1))) as speaker:
        assert [speaker.reply().headers["connection"] for _ in range(2)] == ["keep-alive", "close"]
        assert speaker.is_closed(), "and the connection ends in order"
    assert counts(limited)["samples_taken"] == 2, "the third is not taken"
    with speaking(limited.port, get("/health") * 2) as speaker:
        assert [speaker.reply().status for _ in range(2)] == [200] * 2
        assert speaker.is_closed(), "who sends nothing more is not waited for"


@pytest.mark.parametrize("threading", THREADINGS)
def test_a_server_that_was_held_up_answers_what_came_in_time(
    started: Start, threading: str
) -> None:
    limited = started(
        "metricstream", threading=threading, threads=2, keep_alive="limited",
        keep_alive_idle_ms=1000,
    )  # fmt: skip
    child = limited.instance._child
    with speaking(limited.port, get("/health")) as speaker:
        assert speaker.reply().status == 200
        child.send_signal(signal.SIGSTOP)
        try:
            speaker.say(post(batch("a", 1)))
            # The pause that is allowed ends while nobody can look whether it was one.
            time.sleep(2)
        finally:
            child.send_signal(signal.SIGCONT)
        assert speaker.reply().status == 202


def test_a_wrong_setting_is_refused_by_its_name(started: Start) -> None:
    program = started("metricstream", keep_alive="off").instance._child.args[0]  # type: ignore[index]
    for word in ("threads=0", "threading=many", "parser", "port=99999", "unknown=1"):
        done = subprocess.run([program, word], capture_output=True, text=True, timeout=10)
        assert done.returncode == 2
        assert word.partition("=")[0] in done.stderr
