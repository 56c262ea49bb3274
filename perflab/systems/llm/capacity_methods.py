"""Capacity by search beside capacity by crash: what each method says, and of whom.

By search it is the most users that hold the objectives; by the published method the users at which
a number of failures ended a ramp. They are two estimands, and no number of one is held against a
number of the other: what can be compared is whom each calls the better version.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from perflab.analysis.methods.comparison import Effect
from perflab.analysis.treatments.evaluation import evaluate
from perflab.analysis.treatments.verdict import SMALLEST_N
from perflab.numerals import number
from perflab.recordings import Run
from perflab.systems.llm.claims import HELD, USERS
from perflab.systems.llm.rungs import CAPACITY, FEW_FILES

NOBODY, UNKNOWN = "not shown", "not known"


@dataclass(frozen=True)
class Method:
    """A way to a capacity: its words, the stem of its rungs' names, and its response.

    ``effect`` is the ratio of new over old by this method; None where no block has both versions.
    """

    words: str
    stem: str
    response: str
    effect: Effect | None

    @property
    def winner(self) -> str:
        """Return ``new``, ``old``, not shown (the interval includes 1), or that it is not known."""
        if self.effect is None or self.effect.n < SMALLEST_N:
            return UNKNOWN
        if math.isnan(self.effect.low) and math.isnan(self.effect.high):
            return UNKNOWN
        if self.effect.low > 1:
            return "new"
        return "old" if self.effect.high < 1 else NOBODY

    @property
    def said(self) -> str:
        """Return the ratio with its interval and the winner."""
        if self.effect is None:
            return f"{self.words}: no block has both versions"
        ratio = f"new over old {number(self.effect.estimate)}"
        if math.isnan(self.effect.estimate):
            ratio = f"new over old {self.effect.bound} {number(self.effect.limit)}"
        between = f"[{number(self.effect.low)}, {number(self.effect.high)}]"
        told = "no interval" if math.isnan(self.effect.low) else between
        return f"{self.words}: {ratio} {told}, n = {self.effect.n}, winner {self.winner}"


def methods(run: Run) -> list[Method]:
    """Return the methods that a run has, search first, then stops by number of descriptors."""
    rungs = [item.levels["rung"] for item in run.record.treatments]
    limits = {int(rung.split("_")[1]) for rung in rungs if rung.startswith(f"{FEW_FILES}_")}
    ways = {
        f"{FEW_FILES}_{limit}": (f"by failures, {limit} descriptors", USERS)
        for limit in sorted(limits)
    }
    if any(rung.startswith(f"{CAPACITY}_") for rung in rungs):
        ways = {CAPACITY: ("by search", HELD), **ways}
    effects = {
        (each.contrast.numerator.get("rung"), each.contrast.response): each.effect
        for each in evaluate(run)
        if each.contrast.denominator.get("rung", "").endswith("_old")
    }
    return [
        Method(words, stem, response, effects.get((f"{stem}_new", response)))
        for stem, (words, response) in ways.items()
    ]


def agreement(found: list[Method]) -> str:
    """Say whether search and every stop by failures name the same winner.

    Methods that show no winner do not agree on anything: a difference may be too small for them.
    """
    if len({each.stem == CAPACITY for each in found}) < 2:
        return "only one method was measured (sets=capacity,limits has both)"
    winners = {each.winner for each in found}
    if UNKNOWN in winners:
        return "whether they name the same winner is not known"
    named = winners - {NOBODY}
    if not named:
        return "no method shows a winner"
    if len(named) > 1:
        return "the methods name different winners"
    if NOBODY not in winners:
        return f"both methods name the same winner: {found[0].winner}"
    by = " and ".join(each.words for each in found if each.winner != NOBODY)
    not_by = " or ".join(each.words for each in found if each.winner == NOBODY)
    return f"{named.pop()} is the winner {by}; no winner is shown {not_by}"
