"""Settings of the proxy, from the environment."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CHOICES = {"mode": ("rebuild", "pass", "raw"), "loop": ("asyncio", "uvloop")}
# Lowest and highest value of every number.
WHOLE = {
    "port": (1, 65535),
    "pool_connections": (0, 100_000),
    "max_event_bytes": (1024, 1_000_000_000),
    "max_body_bytes": (1024, 1_000_000_000),
}
NUMBERS = {
    "connect_timeout_s": (0.1, 3600),
    "read_timeout_s": (0.1, 3600),
    "stream_limit_s": (0.1, 86_400),
}
FILES = ("secret_file", "credentials_file")
PRIVATE = ("host", "port", "upstream_address", *FILES)
KEY = "LLM_API_KEY"


@dataclass(frozen=True)
class Settings:
    """What the proxy was started with; service.toml says what each means.

    ``upstream_address`` is the stack's own upstream, whose key is in ``secret_file``;
    ``upstream_url`` takes its place where it is given, with the key of the environment or of
    ``credentials_file``, a JSON object of variables.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    upstream_address: str = ""
    secret_file: Path = Path()
    credentials_file: Path = Path()
    mode: str = "rebuild"
    upstream_url: str = ""
    pool_connections: int = 0
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 60.0
    stream_limit_s: float = 3600.0
    max_event_bytes: int = 1_000_000
    max_body_bytes: int = 16_000_000
    loop: str = "asyncio"

    def public(self) -> dict[str, object]:
        """Return the settings that service.toml names."""
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in PRIVATE
        }


@dataclass(frozen=True)
class Endpoint:
    """Where the upstream is, and the key that it wants: never printed, and kept by no record."""

    url: str
    key: str = field(repr=False)


def endpoint(settings: Settings, env: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the upstream's; one of the user's own may want no key, as Ollama's."""
    if not settings.upstream_url:
        secret = settings.secret_file.read_text().strip() if settings.secret_file.name else ""
        return Endpoint(settings.upstream_address.rstrip("/"), secret)
    path = settings.credentials_file
    known = json.loads(path.read_text()) if path.is_file() else {}
    return Endpoint(settings.upstream_url.rstrip("/"), env.get(KEY, "") or known.get(KEY, ""))


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; one that is not there has its default.

    Raises
    ------
    ValueError
        A variable has a value that is not allowed; the message names it.
    """
    given: dict[str, Any] = {}
    for each in fields(Settings):
        variable = f"LLM_PROXY_{each.name.upper()}"
        if variable in env:
            given[each.name] = _read(variable, env[variable], each.name)
    return Settings(**given)


def _read(variable: str, text: str, name: str) -> str | int | float | Path:
    if name in CHOICES and text not in CHOICES[name]:
        raise ValueError(f"{variable} = {text!r} must be one of {', '.join(CHOICES[name])}")
    if name in WHOLE:
        return _whole(variable, text, *WHOLE[name])
    if name in NUMBERS:
        return _number(variable, text, *NUMBERS[name])
    if name in ("upstream_address", "upstream_url") and text:
        check_url(variable, text)
    return Path(text) if name in FILES else text


def _whole(variable: str, text: str, lowest: int, highest: int) -> int:
    if not (
        text.isascii() and text.isdigit() and len(text) < 12 and lowest <= int(text) <= highest
    ):
        raise ValueError(
            f"{variable} = {text[:40]!r} must be a whole number from {lowest} to {highest}"
        )
    return int(text)


def _number(variable: str, text: str, lowest: float, highest: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not lowest <= value <= highest:
        raise ValueError(
            f"{variable} = {text[:40]!r} must be a number from {lowest:g} to {highest:g}"
        )
    return value


def check_url(variable: str, text: str) -> None:
    """Raise ValueError for what is no endpoint; one that holds a key is not repeated."""
    parts = urlsplit(text)
    if parts.username is not None or parts.password is not None or parts.query:
        raise ValueError(f"{variable} holds a name, password or query: leave it out, and set {KEY}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{variable} = {text!r} must be an http or https address")
