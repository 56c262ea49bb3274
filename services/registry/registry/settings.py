"""Settings of the service, from the environment; service.toml says what each means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

CHOICES = {
    "handler": ("blocking", "threads", "to_thread", "executor", "async", "redirect", "ranged"),
    "body": ("buffered", "streamed"),
    "retry_mode": ("legacy", "standard"),
}
# Lowest and highest value of every whole number.
WHOLE = {
    "port": (1, 65535),
    "executor_threads": (0, 1000),
    "pool_connections": (1, 1000),
    "retry_attempts": (1, 20),
    "range_parts": (1, 64),
}
# Where it listens and whom it asks: others after every start.
PLACES = ("host", "port", "store_address", "database_address")


@dataclass(frozen=True)
class Settings:
    """What the service was started with."""

    host: str = "127.0.0.1"
    port: int = 8000
    store_address: str = ""
    database_address: str = ""
    handler: str = "blocking"
    body: str = "buffered"
    executor_threads: int = 0
    pool_connections: int = 10
    retry_attempts: int = 5
    retry_mode: str = "legacy"
    range_parts: int = 4

    def public(self) -> dict[str, object]:
        """Return the settings that service.toml names."""
        return {name: value for name, value in asdict(self).items() if name not in PLACES}


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; one that is not there has its default.

    Raises
    ------
    ValueError
        A variable has a value that is not allowed; the message names it.
    """
    given: dict[str, object] = {}
    for field in fields(Settings):
        variable = f"REGISTRY_{field.name.upper()}"
        if variable in env:
            given[field.name] = _read(variable, env[variable], field.name)
    return Settings(**given)  # type: ignore[arg-type]


def _read(variable: str, text: str, name: str) -> str | int:
    if name in CHOICES and text not in CHOICES[name]:
        raise ValueError(f"{variable} = {text!r} must be one of {', '.join(CHOICES[name])}")
    if name not in WHOLE:
        return text
    lowest, highest = WHOLE[name]
    if not (text.isdecimal() and len(text) < 10 and lowest <= int(text) <= highest):
        raise ValueError(
            f"{variable} = {text[:40]!r} must be a whole number from {lowest} to {highest}"
        )
    return int(text)
