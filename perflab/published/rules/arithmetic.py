"""Rules of arithmetic: numbers of one study that follow from one another."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add, mul

from perflab.published.intervals import Interval, exactly
from perflab.published.parts import Parts, Result, Word, agreeing

ONE = exactly(1.0)


def product(parts: Parts) -> Result:
    """Say whether the product of ``times`` by those of ``over`` is ``stated``.

    Requests by a rate are a time, one throughput by another is an effect.
    """
    found = reduce(mul, parts.values("times"), ONE) / reduce(mul, parts.values("over"), ONE)
    return agreeing(found, parts.value("stated"), "computed")


def total(parts: Parts) -> Result:
    """Say whether the sum of ``plus`` without ``minus`` is ``stated``."""
    nothing = exactly(0.0)
    found = reduce(add, parts.values("plus"), nothing) - reduce(add, parts.values("minus"), nothing)
    return agreeing(found, parts.value("stated"), "computed")


def change(parts: Parts) -> Result:
    """Say whether ``new`` is by the ``stated`` share (or at a loss of ``lost``) from ``old``."""
    found = parts.value("new") / parts.value("old") - ONE
    if parts.named("lost"):
        found = Interval(-found.high, -found.low)
        return agreeing(found, parts.value("lost"), "lost")
    return agreeing(found, parts.value("stated"), "changed by")


def share(parts: Parts) -> Result:
    """Say whether ``part`` is the ``stated`` share of itself and the ``rest``."""
    part, rest = parts.value("part"), reduce(add, parts.values("rest"))
    # The part stands above and below the line: its ends must not be mixed.
    found = Interval(part.low / (part.low + rest.high), part.high / (part.high + rest.low))
    return agreeing(found, parts.value("stated"), "share")


def shares_fit(parts: Parts) -> Result:
    """Say whether ranges of shares can add up to a whole: every end must leave room for others.

    ``low`` and ``high`` are the ends, in the same order. A stated end that no choice of the other
    shares completes cannot have been computed from one request.
    """
    lows = [value.middle for value in parts.values("low")]
    highs = [value.middle for value in parts.values("high")]
    words = []
    for place, (low, high) in enumerate(zip(lows, highs, strict=True)):
        least = 1 - sum(highs[:place] + highs[place + 1 :])
        most = 1 - sum(lows[:place] + lows[place + 1 :])
        if high > most + 1e-9 or low < least - 1e-9:
            words.append(f"{low:.0%} to {high:.0%} stated, {least:.0%} to {most:.0%} possible")
    if words:
        return Result(Word.INCONSISTENT, "; ".join(words))
    return Result(Word.CONSISTENT, "every end leaves room for the others")


def same(parts: Parts) -> Result:
    """Say whether ``first`` and ``second``, two accounts of one thing, are one number."""
    first, second = parts.value("first"), parts.value("second")
    word = Word.CONSISTENT if first.meets(second) else Word.INCONSISTENT
    return Result(word, f"{first} and {second}, ratio {second.middle / first.middle:.3g}")


def ascending(parts: Parts) -> Result:
    """Say whether every ``step`` is at most the next.

    Percentiles ascend by definition; so does what a text says is less, and a limit is never passed.
    """
    steps = parts.values("step")
    falls = [
        f"{later} after {earlier}" for earlier, later in pairwise(steps) if later.high < earlier.low
    ]
    if falls:
        return Result(Word.INCONSISTENT, "; ".join(falls))
    return Result(Word.CONSISTENT, ", ".join(map(str, steps)))


def room(parts: Parts) -> Result:
    """Say whether the sum of ``plus`` fits below the ``limit``."""
    found, limit = reduce(add, parts.values("plus")), parts.value("limit")
    word = Word.CONSISTENT if found.low <= limit.high else Word.INCONSISTENT
    return Result(word, f"sum {found}; at most {limit.middle:.4g}")
