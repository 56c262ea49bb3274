"""Packed answers: every client judges, counts and compares what is in them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.errors import WrongAnswer
from perflab.load import once
from perflab.load.clients import encodings
from perflab.load.clients.body import BodyRules
from perflab.load.clients.encodings import in_order, unpacked
from perflab.load.clients.response import ResponseReader
from perflab.load.summary import LoadSummary
from perflab.load.workload import Burst, ClosedLoop, Request, Workload
from perflab.systems.custom.instruments import RightAnswer
from tests.load.clients.hostile import Hostile, Part, Script, beside, on_uvloop
from tests.load.meter import drive
from tests.support.examples import examples


def packer(bits: int, level: int = 6) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        compressor = zlib.compressobj(level, wbits=bits)
        return compressor.compress(data) + compressor.flush()

    return pack


GZIP, DEFLATE, RAW = packer(31), packer(15), packer(-15)
PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", GZIP),
    "at another level": ("X-GZIP", packer(31, 1)),
    "of two members": ("identity, gzip", lambda data: GZIP(data[:99]) + GZIP(data[99:])),
    "deflate": ("deflate", DEFLATE),
    "deflate without a header": ("deflate", RAW),
    "br": ("br", lambda data: bytes(pa.Codec("brotli").compress(data))),
    "zstd": ("zstd", lambda data: bytes(pa.Codec("zstd").compress(data))),
}
NAMES = list(PACKED)


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(NAMES), st.binary(max_size=20_000), st.integers(1, 9_000), st.data())
def test_what_was_packed_is_unpacked_in_any_pieces_and_a_part_of_it_is_no_body(
    name: str, content: bytes, piece: int, data: st.DataObject
) -> None:
    encoding, pack = PACKED[name]
    packed = pack(content)
    unpacker = encodings.Unpacker(in_order([encoding]))
    pieces = (packed[at : at + piece] for at in range(0, len(packed), piece))
    assert b"".join(out for part in pieces for out in unpacker.take(part)) == content
    assert unpacker.problem is None
    if name != "of two members" and len(packed) > 1:
        cut = data.draw(st.integers(1, len(packed) - 1))
        assert unpacked(packed[:cut], in_order([encoding]))[1]


CONTENT = random.Random(7).randbytes(150_000).hex().encode() + b"needle"
WRONG = {
    "cut short": ("gzip", GZIP(CONTENT)[:-9], "decoding"),
    "no gzip at all": ("gzip", CONTENT, "decoding"),
    "with bytes after the end": ("gzip", GZIP(CONTENT) + b"more", "decoding"),
    "an old encoding": ("compress", b"\x1f\x9d\x90", "encoding"),
    "an encoding over another": ("gzip, deflate", DEFLATE(GZIP(CONTENT)), "encoding"),
    "another content": ("gzip", GZIP(CONTENT[:-6] + b"thread"), "checksum"),
    "a longer content": ("gzip", GZIP(CONTENT + b"needle"), "length"),
    "another content, not packed": ("identity", CONTENT[:-6] + b"thread", "checksum"),
    "a longer content, not packed": ("identity", CONTENT + b"needle", "length"),
}


def answer(encoding: str, body: bytes) -> Script:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
    return Script((Part(head % (encoding.encode(), len(body)) + body),), end="keep")


@pytest.mark.parametrize("client", ["lean", "aiohttp", "httpx"])
def test_a_check_is_of_the_unpacked_body_with_every_client(client: str) -> None:
    cases = {name: (*PACKED[name][:1], PACKED[name][1](CONTENT), "") for name in NAMES} | WRONG
    cases["plain"] = ("identity", CONTENT, "")
    scripts = {
        f"/{number}".encode(): answer(encoding, body)
        for number, (encoding, body, _) in enumerate(cases.values())
    }

    async def errors() -> list[list[str]]:
        async with Hostile([Script()], scripts) as url:
            works = (
                Workload(
                    request=Request(
                        path=f"/{number}",
                        expect_body="e",
                        expect_bytes=len(CONTENT),
                        expect_crc32=zlib.crc32(CONTENT),
                    ),
                    arrivals=Burst(size=1),
                    client=client,  # type: ignore[arg-type]
                )
                for number in range(len(cases))
            )
            return [await drive(work, url, 2) for work in works]

    shown = dict(zip(cases, on_uvloop(errors), strict=True))
    assert shown == {name: [error] * 2 for name, (_, _, error) in cases.items()}


EVENTS = [b'data: {"token": %d, "x": "%s"}\n\n' % (n, b"ab" * 2_000) for n in range(5)]


def flushed() -> Iterator[bytes]:
    compressor = zlib.compressobj(wbits=31)
    for event in EVENTS:
        yield compressor.compress(event) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()


def stream(encoding: bytes, pieces: list[bytes]) -> Script:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\n" % encoding
    return Script((Part(head), *(Part(piece, 0.03) for piece in pieces)))


STREAMS = {
    b"/each": stream(b"gzip", list(flushed())),
    b"/late": stream(b"gzip", [b"", GZIP(b"".join(EVENTS))]),
    b"/sdch": stream(b"sdch", [b"\n\n" * 9]),
}


def test_streams_are_read_unpacked_and_packing_is_told_where_it_holds_chunks_back() -> None:
    def shown(path: str, **more: Any) -> LoadSummary:
        return once.send(url + path, workers=1, users=2, requests=6, **more)

    with beside(Hostile([Script()], STREAMS)) as url:
        each, late, unknown = (shown(path, stream="sse") for path in ("/each", "/late", "/sdch"))
    assert (each.errors, each.chunks) == (0, 30)
    # A busy client finds events of an answer together that were sent apart.
    assert each.chunks_at_once_share < 1
    assert each.bytes_received == 6 * len(b"".join(flushed()))
    assert (late.errors, late.chunks, late.chunks_at_once_share) == (0, 30, 1)
    (held,) = (one.text for one in late.warnings if one.code == "stream.at_once")
    assert "Content-Encoding" in held
    (cause,) = unknown.errors_by_cause
    assert cause.error == "encoding"
    assert "'sdch'" in cause.first


@pytest.mark.promise
def test_a_script_gets_the_content() -> None:
    reader = ResponseReader(BodyRules(kept=True))
    assert reader.feed(answer("gzip", GZIP(CONTENT)).parts[0].data)
    assert reader.give_body() == CONTENT


def test_the_same_answer_packed_otherwise_is_the_same_for_a_duel() -> None:
    names = [*NAMES, "cut short"]
    scripts = {
        f"/{number}".encode(): answer(*(WRONG[name][:2] if name in WRONG else (
            PACKED[name][0], PACKED[name][1](CONTENT))))
        for number, name in enumerate(names)
    }  # fmt: skip

    def columns(number: int) -> Any:
        request = Request(path=f"/{number}")
        scene: Any = SimpleNamespace(
            workload=Workload(request=request, arrivals=Burst(size=1)), send=sent
        )
        sensor = RightAnswer(variant="new", target=url).sensor(scene)
        sensor.before()
        load: Any = SimpleNamespace(workload=scene.workload, result=nothing)
        return sensor.observe(load).columns

    nothing = SimpleNamespace(places=[], discard=lambda: None)

    def sent(_: Workload) -> Any:
        return nothing

    with beside(Hostile([Script()], scripts)) as url:
        *same, cut = map(columns, range(len(names)))
    assert all(shown == same[0] for shown in same)
    assert same[0]["answer_bytes"] == len(CONTENT)
    # What cannot be unpacked is compared as it came.
    assert cut["answer_bytes"] == len(WRONG["cut short"][1])


def test_a_body_that_cannot_be_unpacked_is_not_the_expected_one_of_a_variant() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: sdch\r\nContent-Length: 6\r\n\r\nneedle"
    request = Request(path="/", expect_body="needle")
    arrivals = ClosedLoop(users=1, requests=1, max_duration_s=5)
    scene: Any = SimpleNamespace(workload=Workload(request=request, arrivals=arrivals))
    with beside(Hostile([Script((Part(answer),))])) as url:
        sensor = RightAnswer(variant="a", target=url).sensor(scene)
        with pytest.raises(WrongAnswer, match=r"the body of GET / is not read: .*sdch"):
            sensor.before()


def test_a_bomb_is_not_unpacked_further_than_may_be_held() -> None:
    packed = bytes(pa.Codec("brotli").compress(bytes(256 << 20)))
    assert len(packed) < encodings.BYTES_AT_ONCE
    with pytest.raises(ValueError, match="become more than 64 MiB"):
        encodings._Brotli().decompress(packed)
    content, problem = unpacked(packed, "br")
    assert content == b""
    assert "become more than 64 MiB" in problem
