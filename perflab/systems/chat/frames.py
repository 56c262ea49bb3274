"""The chat service's frames, as far as a user makes and reads them.

This module was written from the service's README and ``chat.proto`` alone, so that the two sides
check each other. Messages from other users are never decoded: see
:mod:`perflab.systems.chat.users`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack  # type: ignore[import-untyped]
import msgspec
import orjson

Fields = dict[str, Any]
# Kinds of envelopes with their fields, both in the order of their numbers in chat.proto.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "send": ("channel", "text", "stamp"),
    "subscribe": ("channel", "stamp"),
    "unsubscribe": ("channel", "stamp"),
    "ping": ("stamp",),
    "message": ("channel", "sender", "sequence", "text"),
    "ack": ("sequence", "stamp"),
    "pong": ("stamp", "users", "messages", "covered_ns"),
    "error": ("code", "reason", "stamp"),
}
KINDS = tuple(FIELDS)
TEXTS = ("channel", "text", "sender", "code", "reason")
VARINT, LENGTH = 0, 2


@dataclass(frozen=True)
class Codec:
    """How a client speaks one codec; ``text``: its frames are WebSocket text frames."""

    encode: Callable[[Fields], bytes]
    decode: Callable[[bytes], Fields]
    text: bool = False


def protobuf_frame(fields: Fields) -> bytes:
    """Return an envelope in protobuf's wire format.

    Source: Protocol Buffers documentation, Encoding.
    """
    kind = fields["kind"]
    body = bytearray()
    for number, name in enumerate(FIELDS[kind], 1):
        value = fields.get(name)
        if isinstance(value, str):
            raw = value.encode()
            body += bytes((number << 3 | LENGTH,)) + _varint(len(raw)) + raw
        elif value:
            body += bytes((number << 3 | VARINT,)) + _varint(value)
    head = bytes(((KINDS.index(kind) + 1) << 3 | LENGTH,))
    return head + _varint(len(body)) + bytes(body)


def protobuf_fields(frame: bytes) -> Fields:
    """Return the fields of an envelope in protobuf's wire format; absent ones are 0 or empty.

    Raises
    ------
    ValueError
        The frame is cut short, or of no known kind.
    """
    number, body = next(_parts(frame), (0, b""))
    if not 1 <= number <= len(KINDS) or not isinstance(body, bytes):
        raise ValueError("an envelope of no known kind")
    kind = KINDS[number - 1]
    names = FIELDS[kind]
    fields: Fields = {"kind": kind, **{name: "" if name in TEXTS else 0 for name in names}}
    for field, value in _parts(body):
        if 1 <= field <= len(names):
            fields[names[field - 1]] = value.decode() if isinstance(value, bytes) else value
    return fields


def _varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data):
            raise ValueError("a frame that is cut short")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value - (1 << 64 if value >> 63 else 0), place


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        value, place = _read_varint(data, place)
        if tag & 7 == VARINT:
            yield tag >> 3, value
        elif tag & 7 == LENGTH and place + value <= len(data):
            yield tag >> 3, data[place : place + value]
            place += value
        else:
            raise ValueError("a frame that is cut short or of another wire type")


CODECS: Mapping[str, Codec] = {
    "json": Codec(lambda fields: json.dumps(fields).encode(), json.loads, text=True),
    "orjson": Codec(orjson.dumps, orjson.loads),
    "msgspec": Codec(msgspec.json.encode, msgspec.json.decode),
    "msgpack": Codec(msgpack.packb, msgpack.unpackb),
    "protobuf": Codec(protobuf_frame, protobuf_fields),
}
