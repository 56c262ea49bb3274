"""Capacity by search beside capacity by crash: what each method says, and of whom.

By search it is the most users that hold the objectives; by the published method the users at which
a number of failures ended a ramp. They are two estimands, and no number of one is held against a
number of the other: what can be compared is whom each calls the better version.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from perflab.analysis.methods.comparison import Effect
from perflab.analysis.treatments.evaluation import evaluate
from perflab.analysis.treatments.verdict import SMALLEST_N
from perflab.numerals import number
from perflab.recordings import Run
from perflab.systems.llm.claims import HELD, USERS
from perflab.systems.llm.rungs import CAPACITY, FEW_FILES

SEARCH = "by search"
NOBODY, UNKNOWN = "not shown", "not known"


@dataclass(frozen=True)
class Method:
    """A way to a capacity: its words, the stem of its rungs' names, and its response."""

    words: str
    stem: str
    response: str


@dataclass(frozen=True)
class Winner:
    """Which version a method calls the better one, and by what ratio of new over old."""

    method: Method
    effect: Effect | None

    @property
    def name(self) -> str:
        """Return ``new``, ``old``, not shown (the interval includes 1), or that it is not known."""
        if self.effect is None or self.effect.n < SMALLEST_N:
            return UNKNOWN
        if math.isnan(self.effect.low) and math.isnan(self.effect.high):
            return UNKNOWN
        if self.effect.low > 1:
            return "new"
        return "old" if self.effect.high < 1 else NOBODY

    @property
    def words(self) -> str:
        """Return the ratio with its interval and the winner."""
        if self.effect is None:
            return f"{self.method.words}: no block has both versions"
        ratio = f"new over old {number(self.effect.estimate)}"
        if math.isnan(self.effect.estimate):
            ratio = f"new over old {self.effect.bound} {number(self.effect.limit)}"
        between = f"[{number(self.effect.low)}, {number(self.effect.high)}]"
        told = "no interval" if math.isnan(self.effect.low) else between
        return f"{self.method.words}: {ratio} {told}, n = {self.effect.n}, winner {self.name}"


def methods(run: Run) -> Iterator[Method]:
    """Yield the methods that a run has, search first, then stops by number of descriptors."""
    rungs = {item.levels["rung"] for item in run.record.treatments}
    if any(rung.startswith(f"{CAPACITY}_") for rung in rungs):
        yield Method(SEARCH, CAPACITY, HELD)
    parts = (rung.split("_") for rung in rungs if rung.startswith(f"{FEW_FILES}_"))
    for limit in sorted({int(limit) for _, limit, _ in parts}):
        yield Method(f"by failures, {limit} descriptors", f"{FEW_FILES}_{limit}", USERS)


def winners(run: Run) -> list[Winner]:
    """Return whom each method of a run calls the better version."""
    found = {
        (each.contrast.numerator.get("rung"), each.contrast.response): each.effect
        for each in evaluate(run)
        if each.contrast.denominator.get("rung", "").endswith("_old")
    }
    return [Winner(each, found.get((f"{each.stem}_new", each.response))) for each in methods(run)]


def agreement(found: list[Winner]) -> str:
    """Say whether search and every stop by failures name the same winner.

    Methods that show no winner do not agree on anything: a difference may be too small for them.
    """
    kinds = {each.method.words == SEARCH for each in found}
    if len(kinds) < 2:
        return "only one method was measured (sets=capacity,limits has both)"
    if UNKNOWN in {each.name for each in found}:
        return "whether they name the same winner is not known"
    named = {each.name for each in found} - {NOBODY}
    if not named:
        return "no method shows a winner"
    if len(named) > 1:
        return "the methods name different winners"
    silent = [each.method.words for each in found if each.name == NOBODY]
    if not silent:
        return f"both methods name the same winner: {found[0].name}"
    shown = [each.method.words for each in found if each.name != NOBODY]
    by, not_by = " and ".join(shown), " or ".join(silent)
    return f"{named.pop()} is the winner {by}; no winner is shown {not_by}"
