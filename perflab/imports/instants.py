"""Instants as tools write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII
)


def epoch_ns(text: object) -> int:
    """Return an instant of RFC 3339 as nanoseconds since 1970, all nine digits of it.

    Raises
    ------
    ValueError
        It is none.
    """
    match = _INSTANT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{str(text)[:40]!r} is no instant like 2026-11-21T10:30:00.123Z")
    whole = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    return round(whole.timestamp()) * 10**9 + int((match[2] or "0").ljust(9, "0"))


def utc_text(seconds: float) -> str:
    """Return seconds since 1970 as a text in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
