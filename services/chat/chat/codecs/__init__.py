"""Codecs: one module each, loaded only when asked for.

A codec knows three shapes: the envelopes of the WebSocket, and the two messages that only the
benchmark uses. Each shape has a coder of four steps, so that the cost of serializing can be told
from that of building what is serialized::

    value  --native-->  what the library serializes  --dumps-->  frame
    value  <--value---  what the library returns     <--loads--  frame
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chat.refusal import BadFrame

Frame = str | bytes
SHAPES = ("envelope", "published", "history")
MODULES = {
    "json": "chat.codecs.standard_json",
    "orjson": "chat.codecs.rust_json",
    "msgspec": "chat.codecs.typed_json",
    "protobuf": "chat.codecs.protocol_buffers",
    "msgpack": "chat.codecs.message_pack",
}


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
        """Return the value of a frame.

        Raises
        ------
        BadFrame
            The frame holds no such value.
        """
        try:
            return self.value(self.loads(frame))
        # Five libraries read bytes that anyone may send; whatever one of them raises, from
        # RecursionError to an exception of its own, says that these bytes are wrong.
        except Exception as error:
            raise BadFrame(f"no {self.codec} envelope: {error}") from None


def load(name: str) -> Mapping[str, Coder]:
    """Return a codec's coder for each shape.

    Raises
    ------
    ValueError
        There is no codec of that name.
    """
    if name not in MODULES:
        raise ValueError(f"codec {name!r} must be one of {', '.join(MODULES)}")
    coders: Mapping[str, Coder] = importlib.import_module(MODULES[name]).CODERS
    return coders
