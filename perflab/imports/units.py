"""Numbers and times as tools print them."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_NOTHING = re.compile(r"-?nan", re.I)
_TIME = re.compile(r"(\S*?)\s*(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_MS = {
    "ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3.6e6,
}  # fmt: skip


def number(text: str) -> float:
    """Return a finite number.

    Raises
    ------
    ValueError
        It is none; a comma in it is explained.
    """
    plain = text.strip()
    if not _NUMBER.fullmatch(plain):
        hint = ""
        if "," in plain:
            hint = "; the tool wrote commas for its locale: run it with LC_ALL=C"
        raise ValueError(f"{plain[:40]!r} is no number{hint}")
    found = float(plain)
    if not math.isfinite(found):
        raise ValueError(f"{plain[:40]!r} is too large")
    return found


def time_ms(text: str) -> float:
    """Return a time with its unit (``1.23ms``, ``12us``, ``1.00m``) in ms; NaN of ``-nanus``.

    Raises
    ------
    ValueError
        It is none, has no unit, or is below 0.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text.strip()[:40]!r} is no time with a unit (us, ms, s, m, h)")
    if _NOTHING.fullmatch(match[1]):
        return math.nan
    found = number(match[1]) * _MS[match[2]]
    if found < 0:
        raise ValueError(f"{text.strip()[:40]!r} is below 0")
    return found
