"""Settings of the proxy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Settings:
    """What the proxy was started with; service.toml says what each means."""

    host: str = "127.0.0.1"
    port: int = 8000
    upstream_address: str = ""
    mode: Literal["rebuild", "pass", "raw"] = "rebuild"
    read_timeout_s: float = 60.0
