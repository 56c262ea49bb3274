"""Numbers in words: three significant digits, and nouns that agree with their number.

Text from outside is made visible here, too.
"""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

MISSING = "–"
LARGEST = sys.float_info.max
# Categories of Unicode whose characters show nothing: formatting, control, unassigned.
UNSEEN = ("Cc", "Cf", "Cn", "Co", "Cs")
MOST_DECIMALS = 9


def visible(text: str) -> str:
    """Return text with the codes of characters that nobody sees; two names never look alike."""
    return "".join(
        f"\\u{ord(character):04x}"
        if unicodedata.category(character) in UNSEEN and character != "\n"
        else character
        for character in text
    )


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, in the plural unless it is 1: ``1,200 trials``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_of(texts: Sequence[str], most: int) -> str:
    """Return the first texts, and how many there are more: ``a, b and 3 more``."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def capitalized(text: str) -> str:
    """Return text with a capital first letter; all others stay as they are."""
    return text[:1].upper() + text[1:]


def missing(value: Any) -> bool:
    """Return whether ``value`` stands for "no number" (None, NaN, pandas' NA)."""
    if value is None:
        return True
    try:
        return math.isnan(float(value))
    except (TypeError, ValueError):
        return str(value) in ("<NA>", "NaT")


def number(value: Any) -> str:
    """Return three significant digits: ``1,090``, ``46.2``, ``0.0123``; ``-2.32e-08`` if tiny."""
    if missing(value):
        return MISSING
    value = float(value)
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    # Rounding may add a digit before the point: 9.996 is 10.0.
    rounded = min(abs(float(f"{value:.2e}")), LARGEST)
    decimals = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{value:,.{decimals}f}" if decimals < 8 else f"{value:.2e}"


def as_share(value: float, decimals: int = 0) -> str:
    """Return a share in percent: ``4%``; 0% is none at all, and 100% is all.

    Shares near these have as many decimals as tell them apart: ``0.4%``, ``99.6%``.
    """
    text = f"{value:.{decimals}%}"
    seems_whole = float(text.removesuffix("%")) in (0, 100) and value not in (0, 1)
    return as_share(value, decimals + 1) if seems_whole and decimals < MOST_DECIMALS else text


def at_most(value: float) -> str:
    """Return an upper bound, rounded up: ``<= 0.214``."""
    return f"<= {number(to_safe_side(value, 'at most'))}"


def at_least(value: float) -> str:
    """Return a lower bound, rounded down: ``>= 300,932``."""
    return f">= {number(to_safe_side(value, 'at least'))}"


def to_safe_side(value: float, bound: str) -> float:
    """Return a bound with three digits: one of "at most" rounded up, one of "at least" down."""
    if not value or not math.isfinite(value):
        return value
    scale = 10.0 ** max(0, 2 - math.floor(math.log10(abs(value))))
    # A number of three digits stays, although it is no exact binary number.
    if math.isclose(round(value * scale), value * scale, rel_tol=1e-12):
        return value
    return (math.ceil if bound == "at most" else math.floor)(value * scale) / scale


def signed(value: float) -> str:
    """Return a number with its sign: ``+3.20``, ``-0.0123``."""
    return f"{'+' if value > 0 else ''}{number(value)}"
