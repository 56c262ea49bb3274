"""Numbers as they are read: three significant digits, and nouns that agree with their number."""

from __future__ import annotations

import math
from typing import Any

MISSING = "–"


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, which takes an s unless there is one: ``1,200 trials``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def missing(value: Any) -> bool:
    """Return whether ``value`` stands for "no number" (None, NaN, pandas' NA)."""
    if value is None:
        return True
    try:
        return math.isnan(float(value))
    except (TypeError, ValueError):
        return str(value) in ("<NA>", "NaT")


def number(value: Any) -> str:
    """Return three significant digits without an exponent: ``1,090``, ``46.2``, ``0.0123``."""
    if missing(value):
        return MISSING
    value = float(value)
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def signed(value: float) -> str:
    """Return a number with its sign: ``+3.20``, ``-0.0123``."""
    return f"{'+' if value > 0 else ''}{number(value)}"
