"""Long bodies: every byte is counted and summed, none is kept, however the server ends them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load.clients import response
from perflab.load.clients.client import LeanClient
from perflab.load.clients.exchange import BodyRules, Exchange, Prepared
from perflab.load.clients.outcome import ERRORS
from perflab.load.clients.response import BadResponse, ResponseReader
from perflab.load.clients.targets import split
from perflab.load.workload import Request
from tests.load.hostile import on_uvloop
from tests.load.meter import PIECE, Meter, crc32_of
from tests.support.examples import examples

MIB = 1 << 20
LONG = 5 * MIB + 3


async def ask(client: LeanClient, url: str, size: int) -> tuple[str, int]:
    """Ask for so many bytes; return the error class and the bytes."""
    over = asyncio.Event()
    request = Request(path=f"/{size}", expect_crc32=crc32_of(size))
    exchange = Exchange(Prepared(request, split(url)[0]), 0, lambda _: over.set())
    exchange.planned_ns = exchange.started_ns = time.monotonic_ns()
    client.submit(exchange)
    async with asyncio.timeout(20):
        await over.wait()
    return ERRORS[exchange.error], exchange.bytes


def read(raw: bytes, cuts: list[int], rules: BodyRules | None) -> tuple[Any, ...]:
    """Return how a reader reads a response in pieces, and one more on the same connection."""
    places = sorted({cut % (len(raw) + 1) for cut in cuts})
    reader = ResponseReader(rules)
    kind = ""
    for begin, end in zip([0, *places], [*places, len(raw)], strict=True):
        try:
            if begin < end and reader.feed(raw[begin:end]):
                # Later bytes belong to the next request.
                kind = "" if end == len(raw) else "more"
                break
        except BadResponse as error:
            kind = error.kind
            break
    else:
        kind = reader.end()
    if kind:
        return kind, reader.status, reader.size
    fault = reader.body.fault if reader.body is not None else 0
    return kind, reader.status, reader.size, reader.complete, reader.keep_alive, fault


@settings(max_examples=examples(150), deadline=None)
@given(
    st.integers(60_000, 300_000),
    st.sampled_from([b"", b"Connection: close\r\n", b"Content-Type: x\r\n"]),
    st.sampled_from([b"", b"x", b"HTTP/1.1 200 OK\r\n\r\n"]),
    st.integers(0, 5) | st.integers(0, 300_000),
    st.lists(st.integers(0, 400_000), max_size=8),
    st.sampled_from([None, BodyRules(crc32=crc32_of(100_000)), BodyRules(text=b"\xff\x00\x01")]),
)
def test_a_long_body_is_read_as_the_parser_reads_it(
    size: int, extra: bytes, after: bytes, lost: int, cuts: list[int], rules: BodyRules | None
) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + extra + b"Content-Length: %d\r\n\r\n" % size
    body = (PIECE * 5)[:size]
    raw = head + (body[: size - lost] if lost % 2 else body + after)
    ours = read(raw, cuts, rules)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(response, "LONG_BYTES", 1 << 60)
        assert ours == read(raw, cuts, rules)


def test_bodies_that_share_a_buffer_are_summed_apart() -> None:
    # Eight bodies at once, of three lengths; one of them has a wrong bit.
    sizes, flaw_at = [LONG, LONG + 70_000, 3 * MIB] * 2, LONG - 1

    async def go() -> list[tuple[str, int]]:
        async with Meter() as good, Meter(flaw_at=flaw_at) as bad:
            client = LeanClient(asyncio.get_running_loop())
            places = [*[(good, size) for size in sizes], (bad, LONG), (good, LONG)]
            try:
                return await asyncio.gather(*(ask(client, url, size) for url, size in places))
            finally:
                await client.close()

    outcomes = on_uvloop(go)
    assert [kind for kind, _ in outcomes] == [*[""] * 6, "checksum", ""]
    assert [number for _, number in outcomes] == [*sizes, LONG, LONG]
