"""Settings of the stand-in, from the environment."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from llm_upstream.faults import FAULTS

CHOICES = {"fault": FAULTS, "loop": ("asyncio", "uvloop")}
# Lowest and highest value of every number.
WHOLE = {
    "port": (1, 65535),
    "tokens": (1, 100_000),
    "tool_calls": (0, 100),
    "seed": (0, 1_000_000),
    "fault_after": (0, 100_000),
    "huge_bytes": (1, 1_000_000_000),
    "kept_streams": (0, 10_000),
}
NUMBERS = {
    "token_rate": (0, 1_000_000),
    "first_token_ms": (0, 600_000),
    "jitter_ms": (0, 60_000),
}
PRIVATE = ("host", "port", "secret_file")


@dataclass(frozen=True)
class Settings:
    """What the stand-in was started with; service.toml says what each means.

    ``secret_file`` holds the key that requests must show; without it anybody is served.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    secret_file: Path = Path()
    model: str = "stand-in"
    tokens: int = 100
    token_rate: float = 50.0
    first_token_ms: float = 100.0
    jitter_ms: float = 0.0
    seed: int = 0
    tool_calls: int = 2
    fault: str = "none"
    fault_after: int = 10
    huge_bytes: int = 4_000_000
    kept_streams: int = 100
    loop: str = "uvloop"

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
        variable = f"LLM_UPSTREAM_{field.name.upper()}"
        if variable in env:
            given[field.name] = _read(variable, env[variable], field.name)
    return Settings(**given)


def _read(variable: str, text: str, name: str) -> str | int | float | Path:
    if name in CHOICES and text not in CHOICES[name]:
        raise ValueError(f"{variable} = {text!r} must be one of {', '.join(CHOICES[name])}")
    if name in WHOLE:
        return whole(variable, text, *WHOLE[name])
    if name in NUMBERS:
        return _number(variable, text, *NUMBERS[name])
    return Path(text) if name == "secret_file" else text


def whole(variable: str, text: str, lowest: int, highest: int) -> int:
    """Return a whole number; raise ValueError, with its name and bounds, for anything else."""
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
