"""Printed numbers as intervals: all values that would have been printed so.

Two printed numbers contradict each other only where no pair of values behind them agrees (interval
arithmetic: R. E. Moore, Interval Analysis, 1966).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

# Units that published rows may have, in the base unit of their kind.
UNITS = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0,
    "requests/s": 1.0, "messages/s": 1.0, "1/s": 1.0,
    "bytes": 1.0, "bytes/s": 1.0, "MiB/s": 2.0**20, "MB/s": 1e6,
    "%": 0.01, "percentage points": 0.01, "ratio": 1.0, "1": 1.0,
    "count": 1.0, "users": 1.0, "requests": 1.0, "connections": 1.0, "chunks": 1.0,
    "major version": 1.0,
}  # fmt: skip
# What only rounding separates is shown as one number.
NARROW = 0.02
COUNTED = frozenset({"count", "users", "requests", "connections", "chunks", "bytes"})


@dataclass(frozen=True)
class Interval:
    """All values between two ends, both included."""

    low: float
    high: float

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval) -> Interval:
        """Divide by values of one sign."""
        if other.low <= 0 <= other.high:
            return Interval(-math.inf, math.inf)
        return self * Interval(1 / other.high, 1 / other.low)

    def meets(self, other: Interval) -> bool:
        """Say whether a value lies in both; what arithmetic rounds is forgiven."""
        slack = 1e-9 * max((abs(end) for end in (self.low, self.high) if math.isfinite(end)),
                           default=0.0)  # fmt: skip
        return self.low <= other.high + slack and other.low <= self.high + slack

    @property
    def middle(self) -> float:
        """The value as it was printed."""
        return (self.low + self.high) / 2

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"at least {digits(self.low)}"
        if math.isinf(self.low):
            return f"at most {digits(self.high)}"
        narrow = self.high - self.low <= NARROW * abs(self.middle)
        return digits(self.middle) if narrow else f"{digits(self.low)} to {digits(self.high)}"


def digits(value: float) -> str:
    """Return a number with four digits and no exponent where it has none by nature."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def exactly(value: float) -> Interval:
    """Return the interval that holds one value."""
    return Interval(value, value)


def printed(value: float, unit: str, qualifier: str = "", measure: str = "") -> Interval:
    """Return the values behind a printed number, in its base unit.

    Half a unit of the last digit to both sides; after ``~`` of the last digit that is not 0. What
    is counted is exact, and so are the ends of a range (``_low``, ``_high``), unless they are
    computed percentages: a range is the study's own way to say how sure it is. ``>`` and ``<``
    leave one side open.
    """
    scale = UNITS[unit]
    if qualifier in (">", ">="):
        return Interval(value * scale, math.inf)
    if qualifier == "<":
        return Interval(-math.inf, value * scale)
    is_end = measure.endswith(("_low", "_high"))
    if (is_end and unit != "%") or (unit in COUNTED and not qualifier):
        return exactly(value * scale)
    half = _half_a_digit(value, rounded=qualifier == "~" and not is_end)
    return Interval((value - half) * scale, (value + half) * scale)


def _half_a_digit(value: float, *, rounded: bool) -> float:
    digits = Decimal(repr(value)).normalize()
    exponent = int(digits.as_tuple().exponent)
    return 0.5 * 10.0 ** (exponent if rounded else min(exponent, 0))
