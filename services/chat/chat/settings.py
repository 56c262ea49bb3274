"""Settings of the service; service.toml says what each means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Switch = Literal["on", "off"]


@dataclass(frozen=True)
class Settings:
    """What the service was started with."""

    host: str = "127.0.0.1"
    port: int = 8000
    data: Path = Path("data")
    codec: Literal["json", "orjson", "msgspec", "protobuf", "msgpack"] = "json"
    serialize: Literal["per_message", "per_send"] = "per_message"
    deflate: Switch = "on"
    loop: Literal["asyncio", "uvloop"] = "asyncio"
    login_hash: Literal["none", "bcrypt"] = "bcrypt"
    bcrypt_rounds: int = 12
    commit: Literal["batched", "write_behind"] = "batched"
    websocket: Literal["websockets", "websockets-sansio"] = "websockets"
    bind: Switch = "off"
    cprofile: Switch = "off"
    subscriber_share: float = 0.64
    accounts: int = 500
    channels: int = 10
