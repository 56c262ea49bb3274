"""Settings of one worker, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CHOICES = {
    "INFERENCE_TRANSACTION_STYLE": ("transaction", "autocommit"),
    "INFERENCE_DRIVER": ("both", "psycopg2", "asyncpg", "none"),
}


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
    port: int
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
            "runtime": self.runtime,
            "workers": self.workers,
            "pool_size": self.pool_size,
            "pool_minconn": self.pool_minconn,
            "pool_per_worker": self.pool_per_worker,
            "minimum_per_worker": self.minimum_per_worker,
            "transaction_style": self.transaction_style,
            "driver": self.driver,
            "threads": self.threads,
        }


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the worker's settings.

    Raises
    ------
    ValueError
        A variable has a value that is not allowed; the message names it.
    OSError
        The file of the password cannot be read.
    """
    minconn = env.get("INFERENCE_POOL_MINCONN", "max")
    if minconn != "max":
        _at_least_one(env, "INFERENCE_POOL_MINCONN", "1", " or 'max'")
    return Settings(
        runtime=env.get("INFERENCE_RUNTIME", "onnx"),
        workers=_at_least_one(env, "INFERENCE_WORKERS", "4"),
        pool_size=_at_least_one(env, "INFERENCE_POOL_SIZE", "50"),
        pool_minconn=minconn,
        transaction_style=_choice(env, "INFERENCE_TRANSACTION_STYLE"),
        driver=_choice(env, "INFERENCE_DRIVER"),
        threads=_at_least_one(env, "INFERENCE_THREADS", "40"),
        port=int(env.get("INFERENCE_PORT", "0")),
        artifacts=Path(env["ARTIFACTS"]),
        database_host=env.get("DATABASE_HOST", "127.0.0.1"),
        database_port=int(env.get("DATABASE_PORT", "5432")),
        database_password=_content(env.get("DATABASE_PASSWORD_FILE", "")),
    )


def _content(path: str) -> str:
    """Read the password: every user of the host could read it in the environment's place."""
    return Path(path).read_text() if path else ""


def _at_least_one(env: Mapping[str, str], name: str, default: str, otherwise: str = "") -> int:
    text = env.get(name, default)
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ValueError(f"{name} = {text!r} must be a whole number of at least 1{otherwise}")
    return int(text)


def _choice(env: Mapping[str, str], name: str) -> str:
    allowed = CHOICES[name]
    value = env.get(name, allowed[0])
    if value not in allowed:
        raise ValueError(f"{name} = {value!r} must be one of {', '.join(allowed)}")
    return value
