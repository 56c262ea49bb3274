"""Codecs: how what travels becomes frames, and frames become it.

A codec knows three shapes: the envelopes of the WebSocket, and the two messages that only the
benchmark uses. Each shape has a coder of four steps, so that the cost of serializing can be told
from that of building what is serialized::

    value  --native-->  what the library serializes  --dumps-->  frame
    value  <--value---  what the library returns     <--loads--  frame
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import chat_pb2  # type: ignore[import-not-found]  # compiled from chat.proto
import msgpack  # type: ignore[import-untyped]
import msgspec
import orjson
from google.protobuf.internal import api_implementation  # type: ignore[import-untyped]
from msgspec.structs import asdict

from chat.envelopes import KINDS, Entry, Envelope, History, Published, tag_of
from chat.refusals import Refused

Frame = str | bytes
PROTOBUF_BACKEND: str = api_implementation.Type()
_BY_KIND = {tag_of(kind): kind for kind in KINDS}


@dataclass(frozen=True)
class Coder:
    """How one codec handles one shape."""

    codec: str
    native: Callable[[Any], Any]
    dumps: Callable[[Any], Frame]
    loads: Callable[[Any], Any]
    value: Callable[[Any], Any]

    def encode(self, value: Any) -> Frame:
        """Return the frame of a value."""
        return self.dumps(self.native(value))

    def decode(self, frame: Frame) -> Any:
        """Return the value of a frame; raises Refused (``bad_frame``) where it holds none."""
        try:
            return self.value(self.loads(frame))
        # Five libraries read bytes that anyone may send; whatever one of them raises, from
        # RecursionError to an exception of its own, says that these bytes are wrong.
        except Exception as error:
            raise Refused("bad_frame", f"no {self.codec} envelope: {error}") from None


# json, orjson and msgpack serialize dictionaries: msgspec turns a value into one and one into a
# checked value, the same way for all three; only the step between dictionary and frame is theirs.


def _envelope_of(found: Any) -> msgspec.Struct:
    """Return the envelope that a dictionary is.

    msgspec would look for the kind itself, but prepares a union of types anew at every call.
    """
    envelope: msgspec.Struct = msgspec.convert(found, _BY_KIND[found["kind"]])
    return envelope


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "envelope": _envelope_of,
    "published": partial(msgspec.convert, type=Published),
    "history": partial(msgspec.convert, type=History),
}


def _of_dictionaries(codec: str, dumps: Any, loads: Any) -> dict[str, Coder]:
    return {
        shape: Coder(codec, msgspec.to_builtins, dumps, loads, value)
        for shape, value in _VALUES.items()
    }


# With its usual blanks after commas and colons; characters beyond ASCII stay as they are, so that a
# text can be found in its frame. json.dumps would build an encoder anew for every call.
_json_dumps = json.JSONEncoder(ensure_ascii=False).encode


def _json_loads(frame: Frame) -> Any:
    """Read a frame; half a surrogate pair, which no frame could carry on, is refused."""
    text = frame if isinstance(frame, str) else frame.decode()
    found = json.loads(text)
    if "\\u" in text:
        _json_dumps(found).encode()
    return found


# msgspec's own JSON goes straight from and to typed values.


def _unchanged(value: Any) -> Any:
    return value


def _of_types(codec: str, types: Mapping[str, Any]) -> dict[str, Coder]:
    dumps = msgspec.json.Encoder().encode
    return {
        shape: Coder(codec, _unchanged, dumps, msgspec.json.Decoder(kind).decode, _unchanged)
        for shape, kind in types.items()
    }


def _protobuf_envelope(value: msgspec.Struct) -> Any:
    return chat_pb2.Envelope(**{tag_of(type(value)): asdict(value)})


def _from_protobuf_envelope(found: Any) -> msgspec.Struct:
    name = found.WhichOneof("kind")
    if name is None:
        raise ValueError("it is of no known kind")
    kind, body = _BY_KIND[name], getattr(found, name)
    return kind(*[getattr(body, field) for field in kind.__struct_fields__])


def _protobuf_published(value: Published) -> Any:
    return chat_pb2.Published(text=value.text, id=value.id, score=value.score, items=value.items)


def _from_protobuf_published(found: Any) -> Published:
    return Published(found.text, found.id, found.score, list(found.items))


def _protobuf_history(value: History) -> Any:
    return chat_pb2.History(channel=value.channel, entries=[asdict(one) for one in value.entries])


def _from_protobuf_history(found: Any) -> History:
    entries = [Entry(one.sender, one.sequence, one.text) for one in found.entries]
    return History(found.channel, entries)


def _of_protobuf(kind: Any, native: Any, value: Any) -> Coder:
    return Coder("protobuf", native, kind.SerializeToString, kind.FromString, value)


# By codec and shape. Frames of json are text; those of the others are the bytes that they make.
CODERS: Mapping[str, Mapping[str, Coder]] = {
    "json": _of_dictionaries("json", _json_dumps, _json_loads),
    "orjson": _of_dictionaries("orjson", orjson.dumps, orjson.loads),
    "msgpack": _of_dictionaries("msgpack", msgpack.packb, msgpack.unpackb),
    "msgspec": _of_types(
        "msgspec", {"envelope": Envelope, "published": Published, "history": History}
    ),
    "protobuf": {
        "envelope": _of_protobuf(chat_pb2.Envelope, _protobuf_envelope, _from_protobuf_envelope),
        "published": _of_protobuf(
            chat_pb2.Published, _protobuf_published, _from_protobuf_published
        ),
        "history": _of_protobuf(chat_pb2.History, _protobuf_history, _from_protobuf_history),
    },
}
