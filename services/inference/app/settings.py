"""Settings of one worker, from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """What this worker was started with; pool sizes count all workers together."""

    runtime: str
    workers: int
    pool_size: int
    pool_minconn: str
    transaction_style: str
    driver: str
    threads: int
    artifacts: Path
    database_host: str
    database_port: int
    database_password: str = field(repr=False)

    @property
    def pool_per_worker(self) -> int:
        """Return the connections one worker may have."""
        return max(1, self.pool_size // self.workers)

    @property
    def minimum_per_worker(self) -> int:
        """Return the connections one worker's pool keeps."""
        if self.pool_minconn == "max":
            return self.pool_per_worker
        return min(int(self.pool_minconn), self.pool_per_worker)

    def public(self) -> dict[str, object]:
        """Return what may be shown."""
        return {
            "runtime": self.runtime, "workers": self.workers, "pool_size": self.pool_size,
            "pool_minconn": self.pool_minconn, "pool_per_worker": self.pool_per_worker,
            "transaction_style": self.transaction_style, "driver": self.driver,
            "threads": self.threads,
        }  # fmt: skip


def from_environment() -> Settings:
    """Read the settings."""
    env = os.environ
    return Settings(
        runtime=env.get("INFERENCE_RUNTIME", "onnx"),
        workers=int(env.get("INFERENCE_WORKERS", "4")),
        pool_size=int(env.get("INFERENCE_POOL_SIZE", "50")),
        pool_minconn=env.get("INFERENCE_POOL_MINCONN", "max"),
        transaction_style=env.get("INFERENCE_TRANSACTION_STYLE", "transaction"),
        driver=env.get("INFERENCE_DRIVER", "both"),
        threads=int(env.get("INFERENCE_THREADS", "40")),
        artifacts=Path(env["ARTIFACTS"]),
        database_host=env.get("DATABASE_HOST", "127.0.0.1"),
        database_port=int(env.get("DATABASE_PORT", "5432")),
        database_password=env.get("DATABASE_PASSWORD", ""),
    )
