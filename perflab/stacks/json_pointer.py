"""Finding a value in a JSON document by a JSON Pointer (RFC 6901)."""

from __future__ import annotations

from typing import Any


def find(document: Any, pointer: str) -> Any:
    """Return the value that a pointer such as ``/shards/0/rows`` leads to; ``""`` is the whole.

    Raises
    ------
    KeyError
        There is no such value; the message names the first step that leads nowhere.
    """
    value = document
    for step in pointer.split("/")[1:]:
        value = _step(value, step.replace("~1", "/").replace("~0", "~"))
    return value


def _step(value: Any, name: str) -> Any:
    if isinstance(value, dict) and name in value:
        return value[name]
    if isinstance(value, list) and _is_index(name) and int(name) < len(value):
        return value[int(name)]
    raise KeyError(name)


def _is_index(name: str) -> bool:
    """Whether RFC 6901 takes a name for an index: digits of ASCII, without leading zeros."""
    return name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")
