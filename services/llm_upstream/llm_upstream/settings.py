"""Settings of the stand-in; service.toml says what each means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What the stand-in was started with."""

    host: str = "127.0.0.1"
    port: int = 8000
    tokens: int = 100
    token_rate: float = 50.0
    first_token_ms: float = 100.0
    tool_calls: int = 2
    kept_streams: int = 100

    def due_ns(self, token: int) -> int:
        """Return when a token is due, in ns since the request: a schedule without drift."""
        step_ns = 1e9 / self.token_rate if self.token_rate else 0.0
        return round(self.first_token_ms * 1e6 + token * step_ns)
