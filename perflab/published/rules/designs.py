"""Rules of design: which comparisons a study's rows allow."""

from __future__ import annotations

from fractions import Fraction

from perflab.published.intervals import exactly
from perflab.published.parts import Parts, Result, Word, agreeing


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
