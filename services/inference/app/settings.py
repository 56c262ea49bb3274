"""Settings of one worker; service.toml says what each means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from specimen.settings import public


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

    @property
    def pool_per_worker(self) -> int:
        """Return the connections one worker may have."""
        return max(1, self.pool_size // self.workers)

    @property
    def minimum_per_worker(self) -> int:
        """Return the connections one worker's pool keeps."""
        return self.pool_per_worker if self.pool_minconn == "max" else 1

    def shown(self) -> dict[str, Any]:
        """Return what may be shown."""
        return {
            **public(self),
            "pool_per_worker": self.pool_per_worker,
            "minimum_per_worker": self.minimum_per_worker,
        }
