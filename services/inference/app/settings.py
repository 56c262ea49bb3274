"""Settings of one worker; service.toml says what each means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Settings:
    """What this worker was started with; pool sizes count all workers together."""

    runtime: Literal["sklearn", "onnx", "compiled"] = "onnx"
    workers: int = 4
    pool_size: int = 50
    pool_minconn: Literal["max", "1"] = "max"
    port: int = 8000
    artifacts: Path = Path()
    database_host: str = "127.0.0.1"
    database_port: int = 5432
    password_file: Path = Path()

    def pool_of(self, place: int) -> tuple[int, int]:
        """Return how many connections the pool of one worker keeps, and may have.

        All workers together have ``pool_size``: of 50 over 4 workers they have 13, 13, 12 and 12.
        """
        each, rest = divmod(self.pool_size, self.workers)
        most = max(1, each + (place < rest))
        return (most if self.pool_minconn == "max" else 1), most
