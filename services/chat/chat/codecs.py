"""Codecs: how what travels becomes frames, and frames become it.

A codec knows two shapes: the envelopes of the WebSocket, and the benchmark's published message.
Each shape has a coder of four steps, so that serializing and building can be timed apart::

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
from specimen.refusal import Refused

from chat.envelopes import KINDS, Envelope, Published, tag_of

Frame = str | bytes
# What is refused may be quoted, and must fit into a frame whatever it was.
LONGEST_REASON = 300
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
        # Five libraries read bytes that anyone may send; whatever one raises, the bytes are wrong.
        except Exception as error:
            reason = f"no {self.codec} envelope: {error}"[:LONGEST_REASON]
            shown = reason.encode(errors="backslashreplace").decode()
            raise Refused(400, "bad_frame", shown) from None


def _envelope_of(fields: Any) -> msgspec.Struct:
    """Return the envelope that a dictionary is.

    msgspec would look for the kind itself, but prepares a union of types anew at every call.
    """
    envelope: msgspec.Struct = msgspec.convert(fields, _BY_KIND[fields["kind"]])
    return envelope


def _of_dictionaries(codec: str, dumps: Any, loads: Any) -> dict[str, Coder]:
    """Return coders of a library for dictionaries; msgspec makes and checks those."""
    coder = partial(Coder, codec, msgspec.to_builtins, dumps, loads)
    return {
        "envelope": coder(_envelope_of),
        "published": coder(partial(msgspec.convert, type=Published)),
    }


# With its usual blanks after commas and colons; characters beyond ASCII stay as they are, so that a
# text can be found in its frame. json.dumps would build an encoder anew for every call.
_json_dumps = json.JSONEncoder(ensure_ascii=False).encode


def _json_loads(frame: Frame) -> Any:
    """Read a frame; half a surrogate pair, which no frame could carry on, is refused."""
    text = frame if isinstance(frame, str) else frame.decode()
    fields = json.loads(text)
    if "\\u" in text:
        _json_dumps(fields).encode()
    return fields


def _unchanged(value: Any) -> Any:
    return value


def _of_type(kind: Any) -> Coder:
    """Return msgspec's own coder, straight from and to typed values."""
    dumps, loads = msgspec.json.Encoder().encode, msgspec.json.Decoder(kind).decode
    return Coder("msgspec", _unchanged, dumps, loads, _unchanged)


def _protobuf_envelope(value: msgspec.Struct) -> Any:
    return chat_pb2.Envelope(**{tag_of(type(value)): asdict(value)})


def _from_protobuf_envelope(message: Any) -> msgspec.Struct:
    name = message.WhichOneof("kind")
    if name is None:
        raise ValueError("it is of no known kind")
    kind, body = _BY_KIND[name], getattr(message, name)
    return kind(*[getattr(body, field) for field in kind.__struct_fields__])


def _protobuf_published(value: Published) -> Any:
    return chat_pb2.Published(text=value.text, id=value.id, score=value.score, items=value.items)


def _from_protobuf_published(message: Any) -> Published:
    return Published(message.text, message.id, message.score, list(message.items))


def _of_protobuf(kind: Any, native: Any, value: Any) -> Coder:
    return Coder("protobuf", native, kind.SerializeToString, kind.FromString, value)


# By codec and shape. Frames of json are text; those of the others are the bytes that they make.
CODERS: Mapping[str, Mapping[str, Coder]] = {
    "json": _of_dictionaries("json", _json_dumps, _json_loads),
    "orjson": _of_dictionaries("orjson", orjson.dumps, orjson.loads),
    "msgpack": _of_dictionaries("msgpack", msgpack.packb, msgpack.unpackb),
    "msgspec": {"envelope": _of_type(Envelope), "published": _of_type(Published)},
    "protobuf": {
        "envelope": _of_protobuf(chat_pb2.Envelope, _protobuf_envelope, _from_protobuf_envelope),
        "published": _of_protobuf(
            chat_pb2.Published, _protobuf_published, _from_protobuf_published
        ),
    },
}
