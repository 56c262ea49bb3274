"""Coders of libraries that serialize dictionaries: json, orjson and msgpack.

msgspec turns a value into a dictionary and a dictionary into a checked value, the same way for all
three; only the step between dictionary and frame is the library's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from chat.codecs import Coder, Frame
from chat.envelopes import KINDS, History, Published, tag_of

_BY_KIND = {tag_of(kind): kind for kind in KINDS}


def envelope_of(found: Any) -> msgspec.Struct:
    """Return the envelope that a dictionary is.

    msgspec would look for the kind itself, but prepares a union of types anew at every call.
    """
    kind = _BY_KIND[found["kind"]]
    envelope: msgspec.Struct = msgspec.convert(found, kind)
    return envelope


VALUES: dict[str, Callable[[Any], Any]] = {
    "envelope": envelope_of,
    "published": partial(msgspec.convert, type=Published),
    "history": partial(msgspec.convert, type=History),
}


def coders(
    codec: str, dumps: Callable[[Any], Frame], loads: Callable[[Any], Any]
) -> dict[str, Coder]:
    """Return the coders of a library from its two functions."""
    return {
        shape: Coder(codec, msgspec.to_builtins, dumps, loads, value)
        for shape, value in VALUES.items()
    }
