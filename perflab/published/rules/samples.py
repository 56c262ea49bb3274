"""Rules of samples: what a number of values, of runs or of retries can tell at all."""

from __future__ import annotations

import math

from perflab.percentiles import needed_n
from perflab.published.parts import Parts, Result, Word

# Between two rows that should be alike: from this share of an effect on it explains too much of it.
TOO_LARGE = 0.5
NEAR = 1.25


def percentile_support(parts: Parts) -> Result:
    """Say whether ``n`` values (several: the ends of a range) bound ``percentile`` at all.

    See :func:`perflab.percentiles.smallest_n` (order statistics, 95%).
    """
    needed = needed_n(100 * parts.value("percentile").middle)
    counts = [value.middle for value in parts.values("n")]
    words = f"{needed} are needed, there are {' to '.join(f'{n:g}' for n in counts)}"
    return Result(Word.CONSISTENT if min(counts) >= needed else Word.CANNOT_TELL, words)


def censored(parts: Parts) -> Result:
    """Say whether a ``time`` lies at the ``limit`` after which requests were given up.

    Such a time is a bound and not a measurement, and so is every ratio to it (D. R. Cox, D. Oakes,
    Analysis of Survival Data, 1984): the true one is larger by nobody knows how much.
    """
    time, limit = parts.value("time"), parts.value("limit")
    words = f"{time.middle:.4g} s, given up after {limit.middle:.4g} s"
    if time.high >= 0.95 * limit.low:
        return Result(Word.CANNOT_TELL, f"{words}: a bound, not a measurement")
    return Result(Word.CONSISTENT, words)


def single_run(parts: Parts) -> Result:
    """Say whether ``runs`` are enough to tell an effect from what differs from run to run: two are.

    One run has no scatter (T. Kalibera, R. Jones, ISMM 2013).
    """
    runs = parts.value("runs").middle
    word = Word.CONSISTENT if runs >= 2 else Word.CANNOT_TELL
    return Result(word, f"n = {runs:g}")


def few_each(parts: Parts) -> Result:
    """Say whether ``users`` sent several of the ``requests`` each: below two nothing is steady."""
    each = parts.value("requests").middle / parts.value("users").middle
    return Result(Word.CONSISTENT if each >= 2 else Word.CANNOT_TELL, f"{each:.2g} each")


def as_large_as(parts: Parts) -> Result:
    """Say whether rows that should be alike differ as much as an effect (``over`` / ``under``).

    ``twin`` names two rows of one treatment, or two whose order cannot be. Where the log of their
    ratio is half that of the effect or more, the effect may be the same unknown.
    """
    first, second = (value.middle for value in parts.values("twin"))
    twins = abs(math.log(first / second))
    effect = abs(math.log(parts.value("over").middle / parts.value("under").middle))
    words = f"twins differ by {math.exp(twins):.3g}, the effect is {math.exp(effect):.3g}"
    return Result(Word.CANNOT_TELL if twins >= TOO_LARGE * effect else Word.CONSISTENT, words)


def near_limit(parts: Parts) -> Result:
    """Say whether a ``value`` may follow a ``limit``, of which each takes ``each``.

    Within a factor of 1.25 on both sides the limit explains it as well as what was changed.
    """
    most = parts.value("limit").middle / parts.value("each").middle
    ratios = [value.middle / most for value in parts.values("value")]
    words = ", ".join(f"{ratio:.3g}" for ratio in ratios)
    near = any(1 / NEAR <= ratio <= NEAR for ratio in ratios)
    return Result(
        Word.CANNOT_TELL if near else Word.CONSISTENT, f"the limit allows {most:g}: {words} of it"
    )
