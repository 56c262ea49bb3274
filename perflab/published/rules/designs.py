"""Rules of design and of samples: what rows, values, runs or retries can tell at all."""

from __future__ import annotations

import math
from fractions import Fraction

from perflab.percentiles import needed_n
from perflab.published.intervals import exactly
from perflab.published.parts import Parts, Result, Word, agreeing

# Between two rows that should be alike: from this share of an effect on it explains too much of it.
TOO_LARGE = 0.5
NEAR = 1.25


def two_changes(parts: Parts) -> Result:
    """Say whether one ``change`` separates two rows; of several none can be told from the others.

    (Confounding: D. C. Montgomery, Design and Analysis of Experiments, ch. 1.)
    """
    changes = parts.texts("change")
    word = Word.CONSISTENT if len(changes) == 1 else Word.CANNOT_TELL
    return Result(word, f"{len(changes)} at once: {'; '.join(changes)}")


def missing_row(parts: Parts) -> Result:
    """Say whether each ``wanted`` row, without which rows cannot be compared, was published."""
    missing = [part.row for part in parts.named("wanted") if part.value is None]
    if missing:
        return Result(Word.CANNOT_TELL, f"not published: {'; '.join(missing)}")
    return Result(Word.CONSISTENT, "all of them were published")


def two_estimands(parts: Parts) -> Result:
    """Say whether what is compared is ``of`` one thing; a number says nothing of another one."""
    kinds = list(dict.fromkeys(parts.texts("of")))
    word = Word.CONSISTENT if len(kinds) == 1 else Word.CANNOT_TELL
    return Result(word, " against ".join(kinds))


def circular(parts: Parts) -> Result:
    """Say that what was ``derived`` from a number cannot confirm that number."""
    rows = ", ".join(part.row for part in parts.named("derived"))
    return Result(Word.CANNOT_TELL, f"derived from it: {rows}")


def instants(parts: Parts) -> Result:
    """Say at how many instants users act who ``join`` and act at fixed ``interval`` s.

    The k-th user acts at k join mod interval: as many instants as the denominator of join /
    interval in lowest terms, if there are as many users (modular arithmetic). ``users`` over that
    many is the burst; ``stated`` is the number of instants, or of users where ``users`` are given.
    """
    join, interval = (
        Fraction(str(round(parts.value(name).middle, 9))) for name in ("join", "interval")
    )
    places = (join / interval).denominator
    if not parts.named("users"):
        return agreeing(exactly(places), parts.value("stated"), "instants")
    users = parts.value("users").middle
    burst = exactly(users / min(places, users))
    return agreeing(burst, parts.value("stated"), "users at once")


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
