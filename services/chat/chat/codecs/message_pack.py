"""MessagePack, in binary frames."""

from __future__ import annotations

import msgpack

from chat.codecs.plain import coders

CODERS = coders("msgpack", msgpack.packb, msgpack.unpackb)
