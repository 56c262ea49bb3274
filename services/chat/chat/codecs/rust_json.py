"""orjson, in binary frames: its result is bytes already."""

from __future__ import annotations

import orjson

from chat.codecs.plain import coders

CODERS = coders("orjson", orjson.dumps, orjson.loads)
