"""Settings of a service: a dataclass out of the environment's variables.

The lab checks ranges by ``service.toml`` before it starts a service; here each value gets its type.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
WORDS = {int: "a whole number", float: "a finite number"}
# Where it listens, whom it asks, and its secrets: others after every start.
PLACES = ("host", "port", "data", "artifacts")
PLACES_END = ("_host", "_port", "_address", "_file")


def read(kind: type[T], prefix: str, env: Mapping[str, str] = os.environ) -> T:
    """Return settings: the field ``port`` is ``{prefix}PORT``; without a variable its default.

    Raises ValueError, which names the variable, where a value is not allowed.
    """
    given: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        variable = f"{prefix}{name.upper()}"
        if variable in env:
            given[name] = _value(variable, env[variable], hint)
    return kind(**given)


def public(settings: Any) -> dict[str, object]:
    """Return the settings that ``service.toml`` names."""
    return {
        name: value
        for name, value in vars(settings).items()
        if name not in PLACES and not name.endswith(PLACES_END)
    }


def content(path: Path) -> str:
    """Return the secret in a file; nothing where no file is named."""
    return path.read_text().strip() if path.name else ""


def _value(variable: str, text: str, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError(f"{variable} = {text!r} must be one of {', '.join(get_args(kind))}")
        return text
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{variable} = {text[:40]!r} must be {WORDS[kind]}")
    return value
