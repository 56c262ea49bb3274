"""Settings of the service; service.toml says what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Settings:
    """What the service was started with."""

    host: str = "127.0.0.1"
    port: int = 8000
    store_address: str = ""
    database_address: str = ""
    handler: Literal[
        "blocking", "threads", "to_thread", "executor", "async", "redirect", "ranged"
    ] = "blocking"
    body: Literal["buffered", "streamed"] = "buffered"
    executor_threads: int = 0
    pool_connections: int = 10
    retries: int = 4
    retry_mode: Literal["legacy", "standard"] = "legacy"
