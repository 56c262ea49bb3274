"""Every client against every hostile HTTP server, in load workers: counted, bounded, in time.

Outcomes are those of RFC 9112: bytes that a recipient must not take for a response are an error,
those that it may take are a success. ``READ_OTHERWISE`` lists where libraries differ.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Mapping

import pytest

from perflab.load.checks.failures import causes, in_words
from perflab.load.records.result import LoadResult
from perflab.load.workers.generator import Generator
from perflab.load.workload import Burst, Request, Workload
from tests.load.clients.hostile import ENDLESS, OK, Hostile, Part, beside, peak_bytes
from tests.load.clients.hostile_websockets import answers
from tests.load.processes import a_worker

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BOMB = zlib.compressobj(9, zlib.DEFLATED, 31)
BLOCK = BOMB.compress(bytes(1 << 26)) + BOMB.flush()


def whole(status: int, *headers: bytes, body: bytes = b"ok") -> bytes:
    """Return a response with a length."""
    lines = [b"HTTP/1.1 %d Some" % status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])


# Libraries distinguish an early end from a late one less finely, and read on in some cases.
READ_OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "garbage for ever": {"httpx": "head_too_large"},
    "101 unasked": {"aiohttp": "status"},
    "100 for ever": {"aiohttp": "timeout", "httpx": "timeout"},
    "length and chunks": {"httpx": ""},
    "a body too long": {"httpx": ""},
    "a chunk of 2**70": {"httpx": "truncated"},
    "gzip, chunked": {"aiohttp": ""},
}


PEERS = (
    answers("nothing, then closes", "closed"),
    answers("a part of a status line", "truncated", b"HTTP/1."),
    answers("nothing at all", "timeout", end="hang"),
    answers("headers for ever", "head_too_large", HEAD, Part(b"X-Again: yes\r\n" * 99, 0, ENDLESS)),
    answers("a header of 300 kB", "head_too_large", whole(200, b"A: " + b"x" * 300_000)),
    answers("garbage for ever", "protocol", Part(b"\xff\x00garbage" * 999, 0, ENDLESS)),
    answers("HTTP/2 frames", "protocol", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"),
    answers("status 404", "status", whole(404)),
    answers("101 unasked", "protocol", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
          b"Connection: upgrade\r\n\r\n", end="hang"),
    answers("100 for ever", "protocol", Part(b"HTTP/1.1 100 Continue\r\n\r\n" * 99, 0, ENDLESS)),
    answers("103, then an answer", "", b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" + OK),
    # Lengths that contradict what comes.
    answers("length and chunks", "protocol", HEAD + b"Content-Length: 2\r\n"
          b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    answers("a reset in the body", "reset", HEAD + b"Content-Length: 9\r\n\r\nok", Part(b"", 0.1),
          end="reset"),
    answers("a body too long", "protocol", OK + b"too long"),
    # Bodies without an end, or packed otherwise than may be.
    answers("a body for ever", "timeout", HEAD + b"\r\n", Part(bytes(1 << 16), 0, ENDLESS)),
    answers("a chunk of 2**70", "protocol", CHUNKED + b"f" * 18 + b"\r\n"),
    answers("gzip, chunked", "protocol", HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n"
          b"2\r\nok\r\n0\r\n\r\n"),
    answers("a gzip bomb", "", HEAD + b"Content-Encoding: gzip\r\n\r\n", Part(BLOCK, 0, 32)),
)  # fmt: skip

TIMEOUT_S = 1.5
OVERTIME_S = 5.0
MAX_GROWTH_BYTES = 200 * 1024 * 1024


def load(generator: Generator, url: str, client: str) -> LoadResult:
    """Send one request."""
    workload = Workload(
        request=Request(),
        arrivals=Burst(size=1),
        connections="per_request",
        client=client,  # type: ignore[arg-type]
        timeout_s=TIMEOUT_S,
    )
    return generator.run(workload, url)


@pytest.mark.parametrize("client", ["lean", "aiohttp", "httpx"])
def test_each_peer_is_counted_once_with_its_class_in_time_and_in_little_memory(
    client: str,
) -> None:
    # The worker's peak of memory is that of the test.
    with a_worker() as fresh, socket.socket() as silent:
        before = peak_bytes(fresh.pids[0])
        errors, expected = {}, {}
        for peer in PEERS:
            with beside(Hostile([peer.script])) as url:
                result = load(fresh, url, client)
            (row,) = result.requests.to_dict("records")
            errors[peer.name] = row["error"]
            expected[peer.name] = READ_OTHERWISE.get(peer.name, {}).get(client, peer.outcome)
            told = in_words(causes(result))
            assert ("before it answered" in told) == (peer.outcome == "closed")
            assert (row["done_ns"] - row["planned_ns"]) / 1e9 < TIMEOUT_S + OVERTIME_S
            result.discard()
        assert errors == expected
        silent.bind(("127.0.0.1", 0))
        refused = load(fresh, f"http://127.0.0.1:{silent.getsockname()[1]}", client)
        assert list(refused.requests["error"]) == ["connect"]
        refused.discard()
        assert peak_bytes(fresh.pids[0]) - before < MAX_GROWTH_BYTES
