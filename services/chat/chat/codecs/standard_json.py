"""The standard library's json, in text frames, with its usual blanks after commas and colons.

Characters beyond ASCII are written as they are, so that a text can be found in its frame.
"""

from __future__ import annotations

import json
from typing import Any

from chat.codecs import Frame
from chat.codecs.plain import coders

# json.dumps builds an encoder for every call whose options are not the defaults.
dumps = json.JSONEncoder(ensure_ascii=False).encode
_decode = json.JSONDecoder().decode


def loads(frame: Frame) -> Any:
    """Read a frame; half a surrogate pair, which no frame could carry on, is refused."""
    text = frame if isinstance(frame, str) else frame.decode()
    found = _decode(text)
    if "\\u" in text:
        dumps(found).encode()
    return found


CODERS = coders("json", dumps, loads)
