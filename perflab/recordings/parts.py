"""Parts of a record that many treatments share: written once, and called by what they hold."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic_core import to_jsonable_python


def shared(value: Any, parts: dict[str, Any]) -> str:
    """Put a value among ``parts`` unless it is there, and return the key it is found by."""
    plain = to_jsonable_python(value)
    text = json.dumps(plain, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    parts.setdefault(key, plain)
    return key
