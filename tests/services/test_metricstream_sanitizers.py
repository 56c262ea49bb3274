"""The metricstream server under sanitizers: a short load of all that clients do, and no report."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import struct
import threading
import time

import pytest
from compiling import ADDRESS, THREAD, with_flags
from running import Start
from speaking import Speaker, batch, chunked, get, post

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KINDS = {"address": ADDRESS, "thread": THREAD}
SERVERS = {
    "thread": "per_client", "producer_consumer": "ring", "pool": "double_mutex", "epoll": "ring",
}  # fmt: skip
CLIENTS = 6
LOAD_S = 1.5


def misbehave(port: int, seed: int, until: float, answered: list[int]) -> None:
    """Be a client of every sort, until an instant or until the server has gone."""
    rng = random.Random(seed)
    while time.monotonic() < until:
        with contextlib.suppress(OSError, AssertionError):
            answered[seed] += visit(port, rng)


def visit(port: int, rng: random.Random) -> int:
    body = batch(f"client{rng.randrange(20)}", *range(rng.randrange(20)))
    speaker = Speaker(port)
    try:
        kinds = [post(body), chunked(body), get("/counts"), post(b"", path="/reset"), post(b"{")]
        asked = rng.choices(kinds, weights=[8, 4, 1, 0.2, 1], k=rng.randrange(1, 8))
        text = b"".join(asked)
        ending = rng.randrange(6)
        if ending == 0:
            speaker.say(text[: rng.randrange(len(text))])
        elif ending == 1:
            at_once = struct.pack("ii", 1, 0)
            speaker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            speaker.say(text)
        else:
            speaker.say(text)
            return sum(speaker.reply().status in (200, 202, 400) for _ in asked)
        return 0
    finally:
        speaker.socket.close()


@pytest.mark.parametrize("threads", list(SERVERS))
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_load_and_a_stop_amid_it_give_no_report(started: Start, kind: str, threads: str) -> None:
    service = started(
        with_flags(*KINDS[kind]), threading=threads, store=SERVERS[threads], threads=3,
        keep_alive="on", queue_depth=8, max_connections=5, request_timeout_ms=300,
    )  # fmt: skip
    answered = [0] * CLIENTS
    until = time.monotonic() + LOAD_S + 1
    clients = [
        threading.Thread(target=misbehave, args=(service.port, seed, until, answered))
        for seed in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    time.sleep(LOAD_S)
    service.instance._child.send_signal(signal.SIGTERM)
    for client in clients:
        client.join()
    assert service.wait_ended() == "ended with exit status 0", service.instance.log(200)
    assert "anitizer" not in service.instance.log(200)
    assert sum(answered) > 20
