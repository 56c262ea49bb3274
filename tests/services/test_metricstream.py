"""The metricstream server: each factor does what it says, counts are true, bad input is refused.

Most is looked at under each of the four ways in which its threads share the work.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from running import Answer, Service, Start, call, counts, until, wait_until
from speaking import Speaker, batch, get, post, speaking

from perflab.host.listening_queues import listeners

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

THREADINGS = ["thread", "producer_consumer", "pool", "epoll"]
STORES = ["double_mutex", "per_client", "ring"]
MAX_CONNECTIONS = 20


@pytest.fixture(scope="module", params=THREADINGS)
def server(request: pytest.FixtureRequest, started: Start) -> Iterator[Service]:
    """A server of each kind, its bounds small enough to be met."""
    service = started(
        "metricstream", threading=request.param, threads=2, keep_alive="on",
        max_connections=MAX_CONNECTIONS,
    )  # fmt: skip
    yield service
    assert not service.instance.exit_reason(), service.instance.log()


def sent(service: Service, body: bytes) -> Answer:
    return call(service.port, "POST", "/metrics", body.decode())


def threads_of(service: Service) -> int:
    return len(list(Path(f"/proc/{service.instance.pid}/task").iterdir()))


def test_samples_are_stored_and_counted_and_forgotten(server: Service) -> None:
    assert call(server.port, "POST", "/reset").status == 200
    with speaking(server.port, post(batch("a", 1, 2)) + post(batch("b", 3))) as speaker:
        assert [speaker.reply().body for _ in range(2)] == [{"accepted": 2}, {"accepted": 1}]
    until(server, lambda now: now["samples_stored"] == 3)
    assert (counts(server)["samples_taken"], counts(server)["series"]) == (3, 2)
    call(server.port, "POST", "/reset")
    assert {counts(server)[name] for name in ("samples_taken", "samples_stored", "series")} == {0}


def test_the_kernel_keeps_as_many_connections_to_accept_as_the_backlog_says(
    started: Start,
) -> None:
    port = started("metricstream", backlog=7).port
    assert [one.backlog for one in listeners() if one.port == port] == [7]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("threading", ["producer_consumer", "epoll"])
def test_every_store_keeps_what_many_clients_send_at_once(
    started: Start, threading: str, store: str
) -> None:
    server = started("metricstream", threading=threading, store=store, threads=3)
    with ThreadPoolExecutor(8) as clients:
        said = clients.map(lambda n: sent(server, batch(f"client{n % 5}", 1, 2, 3)), range(200))
        assert {answer.status for answer in said} == {202}
    until(server, lambda now: now["samples_stored"] == 600)
    assert (counts(server)["samples_taken"], counts(server)["series"]) == (600, 5)


def _threads_over(server: Service, seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield threads_of(server)
        time.sleep(0.02)


@pytest.mark.parametrize(("threading", "more"), [("thread", 6), ("pool", 0)])
def test_only_a_thread_per_connection_grows_with_them(
    started: Start, threading: str, more: int
) -> None:
    server = started("metricstream", threading=threading, threads=4, keep_alive="on")
    assert sent(server, batch("a", 1)).status == 202
    until(server, lambda now: now["open_connections"] == 1)
    # The thread of a connection that has closed may still be about to end.
    alone = min(_threads_over(server, 0.5))
    held = [Speaker(server.port) for _ in range(6)]
    until(server, lambda now: now["open_connections"] == 7)
    wait_until(lambda: threads_of(server) == alone + more, timeout_s=10)
    for speaker in held:
        speaker.socket.close()


def test_a_server_keeps_connections_or_closes_them_as_it_was_asked(started: Start) -> None:
    for keep_alive, word in (("off", "close"), ("on", "keep-alive")):
        service = started("metricstream", keep_alive=keep_alive)
        with speaking(service.port, get("/health")) as speaker:
            assert speaker.reply().headers["connection"] == word
            if word == "close":
                assert speaker.is_closed()
                continue
            speaker.say(get("/health", "Connection: close"))
            assert speaker.reply().headers["connection"] == "close"
            assert speaker.is_closed()


def parse_ms(service: Service, metrics: int) -> float:
    body = json.dumps({"client": "a", "metrics": [{"name": "cpu", "value": 0.5}] * metrics})
    answer = sent(service, body.encode())
    assert answer.status == 202
    return answer.phases["parse"]


def test_eight_times_the_text_costs_the_quadratic_parser_far_more(started: Start) -> None:
    growth = {}
    for parser in ("linear", "quadratic"):
        service = started("metricstream", parser=parser)
        # Other programs only make it longer, and the two sizes in turn alike.
        turns = [(parse_ms(service, 500), parse_ms(service, 4000)) for _ in range(20)]
        small, large = map(min, zip(*turns, strict=True))
        growth[parser] = large / small
    assert growth["linear"] < 20 < growth["quadratic"]


def test_only_a_store_with_locks_waits_for_them(started: Start) -> None:
    waited = {}
    for store in STORES:
        service = started("metricstream", store=store, threading="epoll", threads=2)
        phases = [sent(service, batch("a", 1)).phases for _ in range(20)]
        assert {tuple(each) for each in phases} == {("taken", "parse", "lock", "store")}
        waited[store] = max(each["lock"] for each in phases)
    assert waited["ring"] == 0 < min(waited["double_mutex"], waited["per_client"])


def test_a_wrong_body_is_told_why_and_the_connection_goes_on(server: Service) -> None:
    wrong = {
        b"{": "no JSON", b"[1]": "'client' must be there", b'{"client": 1}': "be a string",
        b'{"client": "", "metrics": []}': "1 to 128 bytes", b'{"client": "a"}': "'metrics'",
        b'{"client": "a", "metrics": [{"name": "m", "value": "1"}]}': "be a number",
    }  # fmt: skip
    with speaking(server.port) as speaker:
        for body, why in wrong.items():
            speaker.say(post(body))
            reply = speaker.reply()
            assert (reply.status, why in reply.body["error"]) == (400, True), reply
        speaker.say(post(batch(), path="/nowhere") + get("/metrics"))
        assert [speaker.reply().status for _ in range(2)] == [404, 405]
        speaker.say(post(batch("a", 1)))
        assert speaker.reply().status == 202


HEAD = b"POST /metrics HTTP/1.1\r\nHost: a\r\n"
REFUSED = {
    "a length that is none": (HEAD + b"Content-Length: +5\r\n\r\nhello", 400),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 411),
    "another protocol": (b"GET /health HTTP/2.0\r\nHost: a\r\n\r\n", 400),
    "no request": (b"\x16\x03\x01\x02\r\n\r\n", 400),
    "a head too long": (HEAD + b"X: " + b"a" * 9000 + b"\r\n\r\n", 431),
    "a body too long": (HEAD + b"Content-Length: 1048577\r\n\r\na", 413),
}


def test_what_is_no_request_of_this_server_is_refused_and_ends_the_connection(
    server: Service,
) -> None:
    for name, (request, status) in REFUSED.items():
        with speaking(server.port, request + get("/counts")) as speaker:
            assert (speaker.reply().status, speaker.is_closed()) == (status, True), name


def test_others_are_served_while_clients_take_their_time(server: Service) -> None:
    begun = [Speaker(server.port) for _ in range(4)]
    for speaker in begun:
        speaker.say(post(batch("slow", 1))[:30])
    assert sent(server, batch("a", 1)).status == 202, "more slow clients than threads"
    for speaker in begun:
        speaker.say(post(batch("slow", 1))[30:])
        assert speaker.reply().status == 202
        speaker.socket.close()


def test_connections_beyond_the_bound_are_turned_away_and_those_within_go_on(
    server: Service,
) -> None:
    until(server, lambda now: now["open_connections"] == 1)
    before = counts(server)["turned_away"]
    within = [Speaker(server.port) for _ in range(MAX_CONNECTIONS)]
    time.sleep(0.1)
    beyond = [Speaker(server.port) for _ in range(5)]
    assert [speaker.reply().status for speaker in beyond] == [503] * 5
    within[0].say(post(batch("a", 1)))
    assert within[0].reply().status == 202
    for speaker in within + beyond:
        speaker.socket.close()
    until(server, lambda now: now.get("open_connections") == 1)
    assert counts(server)["turned_away"] >= before + 5


def test_settings_in_force_are_told_and_wrong_ones_refused_by_name(server: Service) -> None:
    # Nothing but settings: a port is another after every start, and would pass for a change.
    assert call(server.port, "GET", "/settings").body == dict(server.launch.settings)
    program = str(server.instance._child.args[0])  # type: ignore[index]
    for word in ("threading=many", "parser", "unknown=1"):
        done = subprocess.run([program, word], capture_output=True, text=True, timeout=10)
        assert (done.returncode, word.partition("=")[0] in done.stderr) == (2, True), word
