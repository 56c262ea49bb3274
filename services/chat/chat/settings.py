"""Settings of the service, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Switch = Literal["on", "off"]


class Settings(BaseModel):
    """What the service was started with; service.toml says what each means and its default."""

    model_config = ConfigDict(frozen=True)

    host: str
    port: int
    data: Path
    codec: Literal["json", "orjson", "msgspec", "protobuf", "msgpack"]
    serialize: Literal["per_message", "per_send"]
    deflate: Switch
    loop: Literal["asyncio", "uvloop"]
    login_hash: Literal["none", "bcrypt", "argon2"]
    bcrypt_rounds: int = Field(ge=4, le=16)
    login_in: Literal["loop", "threads"]
    commit: Literal["each", "batched", "write_behind"]
    websocket: Literal["websockets", "websockets-sansio"]
    bind: Switch
    cprofile: Switch
    subscriber_share: float = Field(ge=0, le=1)
    accounts: int = Field(ge=1)
    channels: int = Field(ge=1)


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings: ``codec`` from ``CHAT_CODEC``, and so on.

    Raises
    ------
    ValueError
        A variable is missing or has a value that is not allowed; the message names it.
    """
    given = {name: env.get(f"CHAT_{name.upper()}") for name in Settings.model_fields}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        wrong = [(str(each["loc"][0]), each["msg"]) for each in error.errors()]
        told = (f"CHAT_{name.upper()} = {given[name]!r}: {words}" for name, words in wrong)
        raise ValueError("; ".join(told)) from None
