"""Settings of the service, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

CHOICES = {
    "codec": ("json", "orjson", "msgspec", "protobuf", "msgpack"),
    "serialize": ("per_message", "per_send"),
    "deflate": ("on", "off"),
    "loop": ("asyncio", "uvloop"),
    "login_hash": ("bcrypt", "argon2", "none"),
    "login_in": ("loop", "threads"),
    "commit": ("batched", "each", "write_behind"),
    "websocket": ("websockets", "websockets-sansio", "wsproto"),
    "bind": ("off", "on"),
    "cprofile": ("off", "on"),
    "benchmark": ("off", "on"),
}


@dataclass(frozen=True)
class Settings:
    """What the service was started with; service.toml says what each means."""

    host: str
    port: int
    data: Path
    codec: str = "json"
    serialize: str = "per_message"
    deflate: str = "on"
    loop: str = "asyncio"
    login_hash: str = "bcrypt"
    bcrypt_rounds: int = 12
    login_in: str = "loop"
    commit: str = "batched"
    websocket: str = "websockets"
    bind: str = "off"
    cprofile: str = "off"
    subscriber_share: float = 0.64
    accounts: int = 500
    channels: int = 10
    max_message_bytes: int = 16384
    send_queue: int = 1000
    token_ttl_s: float = 3600.0
    batch_size: int = 100
    batch_interval_ms: float = 50.0
    keepalive_s: float = 20.0
    patience_s: float = 10.0
    benchmark: str = "off"

    @property
    def largest_frame_bytes(self) -> int:
        """Return the length at which the WebSocket itself breaks off, unread."""
        return 2 * self.max_message_bytes

    def public(self) -> dict[str, object]:
        """Return the settings that service.toml names."""
        hidden = ("host", "port", "data")
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in hidden
        }


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; one that is not there has its default.

    Raises
    ------
    ValueError
        A variable has a value that is not allowed; the message names it.
    """
    given: dict[str, Any] = {
        field.name: _read(
            f"CHAT_{field.name.upper()}", env[f"CHAT_{field.name.upper()}"], field.name
        )
        for field in fields(Settings)
        if f"CHAT_{field.name.upper()}" in env
    }
    return Settings(**given)


WHOLE = (
    "port",
    "bcrypt_rounds",
    "accounts",
    "channels",
    "max_message_bytes",
    "send_queue",
    "batch_size",
)
NUMBERS = ("subscriber_share", "token_ttl_s", "batch_interval_ms", "keepalive_s", "patience_s")


def _read(variable: str, text: str, name: str) -> str | int | float | Path:
    if name in CHOICES:
        if text not in CHOICES[name]:
            raise ValueError(f"{variable} = {text!r} must be one of {', '.join(CHOICES[name])}")
        return text
    if name in WHOLE:
        if not (text.isascii() and text.isdigit()) or int(text) < 1:
            raise ValueError(f"{variable} = {text!r} must be a whole number of at least 1")
        return int(text)
    if name in NUMBERS:
        return _number(variable, text, highest=1.0 if name == "subscriber_share" else 1e9)
    return Path(text) if name == "data" else text


def _number(variable: str, text: str, highest: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= highest:
        raise ValueError(f"{variable} = {text!r} must be a number from 0 to {highest:g}")
    return value
