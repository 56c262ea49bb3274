"""Settings of the service, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CHOICES = {
    "handler": ("blocking", "threads", "to_thread", "executor", "async", "redirect", "ranged"),
    "body": ("buffered", "streamed"),
    "retry_mode": ("legacy", "standard"),
    "loop": ("asyncio", "uvloop"),
}
# Lowest and highest value of every whole number.
WHOLE = {
    "port": (1, 65535),
    "executor_threads": (0, 1000),
    "pool_connections": (1, 1000),
    "retry_attempts": (1, 20),
    "range_parts": (1, 64),
}
FILES = ("secret_file", "credentials_file")
PRIVATE = ("host", "port", "store_address", "database_address", *FILES)
URLS = ("store_address", "database_address", "store_url", "database_url")


@dataclass(frozen=True)
class Settings:
    """What the service was started with; service.toml says what each means.

    ``store_address`` and ``database_address`` are the stack's own, which ``secret_file`` opens;
    ``store_url`` and ``database_url`` take their place where they are given, with the credentials
    of the environment or of ``credentials_file``, a JSON object of variables.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    store_address: str = ""
    database_address: str = ""
    secret_file: Path = Path()
    credentials_file: Path = Path()
    handler: str = "blocking"
    body: str = "buffered"
    executor_threads: int = 0
    pool_connections: int = 10
    retry_attempts: int = 5
    retry_mode: str = "legacy"
    range_parts: int = 4
    read_timeout_s: float = 60.0
    store_url: str = ""
    database_url: str = ""
    region: str = "us-east-1"
    bucket: str = "models"
    table: str = "models"
    loop: str = "asyncio"

    def public(self) -> dict[str, object]:
        """Return the settings that service.toml names."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in PRIVATE
        }


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; one that is not there has its default.

    Raises
    ------
    ValueError
        A variable has a value that is not allowed; the message names it.
    """
    given: dict[str, Any] = {}
    for field in fields(Settings):
        variable = f"REGISTRY_{field.name.upper()}"
        if variable in env:
            given[field.name] = _read(variable, env[variable], field.name)
    return Settings(**given)


def _read(variable: str, text: str, name: str) -> str | int | float | Path:
    if name in CHOICES and text not in CHOICES[name]:
        raise ValueError(f"{variable} = {text!r} must be one of {', '.join(CHOICES[name])}")
    if name in WHOLE:
        return _whole(variable, text, *WHOLE[name])
    if name == "read_timeout_s":
        return _seconds(variable, text)
    if name in URLS and text:
        check_url(variable, text)
    return Path(text) if name in FILES else text


def _whole(variable: str, text: str, lowest: int, highest: int) -> int:
    if not (
        text.isascii() and text.isdigit() and len(text) < 10 and lowest <= int(text) <= highest
    ):
        raise ValueError(
            f"{variable} = {text[:40]!r} must be a whole number from {lowest} to {highest}"
        )
    return int(text)


def _seconds(variable: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:
        raise ValueError(f"{variable} = {text[:40]!r} must be a number of seconds, 0.1 to 3600")
    return value


def check_url(variable: str, text: str) -> None:
    """Raise ValueError for what is no endpoint; one that holds a password is not repeated."""
    parts = urlsplit(text)
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            f"{variable} holds a name or password: leave them out, and set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{variable} = {text!r} must be an http or https address")
