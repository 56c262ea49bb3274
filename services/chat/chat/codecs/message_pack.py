"""MessagePack, in binary frames."""

from __future__ import annotations

import msgpack  # type: ignore[import-untyped]

from chat.codecs.plain import coders

CODERS = coders("msgpack", msgpack.packb, msgpack.unpackb)
