"""Protocol Buffers, in binary frames; chat_pb2 is compiled from chat.proto (compile_proto.py)."""

from __future__ import annotations

from typing import Any

import chat_pb2  # type: ignore[import-not-found]
from google.protobuf.internal import api_implementation  # type: ignore[import-untyped]
from msgspec import Struct
from msgspec.structs import asdict

from chat.codecs import Coder
from chat.envelopes import KINDS, Entry, History, Published, tag_of

BACKEND: str = api_implementation.Type()
_BY_KIND = {tag_of(kind): kind for kind in KINDS}


def _envelope(value: Struct) -> Any:
    return chat_pb2.Envelope(**{tag_of(type(value)): asdict(value)})


def _from_envelope(found: Any) -> Struct:
    name = found.WhichOneof("kind")
    if name is None:
        raise ValueError("it is of no known kind")
    kind = _BY_KIND[name]
    body = getattr(found, name)
    return kind(*[getattr(body, field) for field in kind.__struct_fields__])


def _published(value: Published) -> Any:
    return chat_pb2.Published(text=value.text, id=value.id, score=value.score, items=value.items)


def _from_published(found: Any) -> Published:
    return Published(found.text, found.id, found.score, list(found.items))


def _history(value: History) -> Any:
    return chat_pb2.History(channel=value.channel, entries=[asdict(one) for one in value.entries])


def _from_history(found: Any) -> History:
    entries = [Entry(one.sender, one.sequence, one.text) for one in found.entries]
    return History(found.channel, entries)


def _coder(kind: Any, native: Any, value: Any) -> Coder:
    return Coder("protobuf", native, kind.SerializeToString, kind.FromString, value)


CODERS = {
    "envelope": _coder(chat_pb2.Envelope, _envelope, _from_envelope),
    "published": _coder(chat_pb2.Published, _published, _from_published),
    "history": _coder(chat_pb2.History, _history, _from_history),
}
