"""msgspec: JSON straight from and to typed values, in binary frames, without dictionaries."""

from __future__ import annotations

from typing import Any

import msgspec

from chat.codecs import Coder
from chat.envelopes import Envelope, History, Published

TYPES: dict[str, Any] = {"envelope": Envelope, "published": Published, "history": History}


def unchanged(value: Any) -> Any:
    """Return the value itself: it is what the library serializes."""
    return value


_dumps = msgspec.json.Encoder().encode
CODERS = {
    shape: Coder("msgspec", unchanged, _dumps, msgspec.json.Decoder(kind).decode, unchanged)
    for shape, kind in TYPES.items()
}
