"""Numbers as a reader wants them: three significant digits, an interval, an honest p."""

from __future__ import annotations

import math
from typing import Any

MISSING = "–"


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


def ratio(value: Any) -> str:
    """Return a ratio with two decimals, more where it is small: ``1.58``, ``0.0312``."""
    if missing(value):
        return MISSING
    return f"{float(value):.2f}" if abs(float(value)) >= 0.1 else number(value)


def estimate(value: Any, low: Any, high: Any) -> str:
    """Return a ratio with its interval: ``1.58 [1.49, 1.70]``."""
    if missing(value):
        return MISSING
    if missing(low) or missing(high):
        return f"{ratio(value)} (no interval)"
    return f"{ratio(value)} [{ratio(low)}, {ratio(high)}]"


def measured(value: Any, low: Any, high: Any) -> str:
    """Return a measured quantity with its interval: ``483 [471, 502]``."""
    if missing(value):
        return MISSING
    if missing(low) or missing(high):
        return f"{number(value)} (no interval)"
    return f"{number(value)} [{number(low)}, {number(high)}]"


def p_value(value: Any) -> str:
    """Return a p-value with two significant digits, ``< 0.001`` below that."""
    if missing(value):
        return MISSING
    value = float(value)
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def count(value: Any) -> str:
    """Return a whole number."""
    return MISSING if missing(value) else f"{int(value):,}"
