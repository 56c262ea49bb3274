"""The signed-rank test for runs that are looked at several times and may stop at any look.

``docs/explanation/verdicts.md`` has the method with its sources. Of runs between equal treatments
that no earlier look ended, the exact signed-rank test of a look ends as many as its share of 5%
allows. The inverted tests are repeated confidence intervals. The p-value of a look is
the smallest error of all looks with which it would show a difference, and at most 0.05 exactly
where the 95% interval excludes no effect. What a look leaves of its share goes to no other look, so
that a larger error never ends fewer runs at any look. A block that lacks a side leaves its look
with fewer blocks and the same share.

The test assumes only what the random order of trials within blocks provides: between equal
treatments a block's difference is as likely positive as negative. It assumes neither normal noise
nor equal noise of all blocks nor a steady machine. How strongly the looks depend on each other
depends on the order of the sizes of the differences. They depend least where every block differs by
more than all before it. Then the newest block has the highest rank, the sum of signed ranks is a
Markov chain, and the error of all looks is a sum over its states. The code assumes this order, so
5% is the error of the least favourable order, and other orders err less. That this order is the
least favourable is not proved: ``tests/statistics/test_repeated_looks.py`` tries all signs of short
runs in other orders.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from perflab.statistics import signed_rank

# Below 6 blocks the signed-rank test shows nothing at 5%.
FEWEST_AT_MOST = 6
MOST_AT_MOST = 200

# Sums of shares are rounded: allow for the last bits.
SHARE_ROUNDING = 1e-9

Ending = Literal["", "decided", "most blocks"]
# The most blocks between two looks.
APART = 6
# The first look's share of the error of all looks: at 5% it is the smallest p of 7 blocks, so that
# a first look at 8 blocks can show an effect even without one block, or beside a second claim.
FIRST_SHARE = 5 / 16
ERROR = 0.05
# With fewer blocks no share is large enough for their smallest p.
FEWEST_THAT_SHOW = 6
HALVINGS = 52


class Look(BaseModel):
    """One look at a run: after how many blocks, and the contrasts that were still undecided."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: int = Field(ge=1, le=MOST_AT_MOST)
    undecided: tuple[str, ...] = ()


class PlannedLook(BaseModel):
    """A planned look: after how many blocks, and its share of the error of all looks.

    All looks together may find a difference that does not exist in 5% of runs. A look with a share
    of 0.25 may find one that no earlier look found in 1.25% of runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: int = Field(ge=1, le=MOST_AT_MOST)
    share: float = Field(gt=0, le=1)


class UntilDecided(BaseModel):
    """Blocks are added until every contrast is decided: from ``least_blocks`` to ``most_blocks``.

    ``plan`` holds the planned looks, fixed before the first block, and ``looks`` those so far.
    ``ended`` says why the run ended: everything was decided, or it had the most blocks. It is empty
    while the run goes on, and if it was broken off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    least_blocks: int = Field(ge=1, le=MOST_AT_MOST)
    most_blocks: int = Field(ge=FEWEST_AT_MOST, le=MOST_AT_MOST)
    plan: tuple[PlannedLook, ...] = Field(min_length=1, max_length=MOST_AT_MOST)
    looks: tuple[Look, ...] = Field(default=(), max_length=MOST_AT_MOST)
    ended: Ending = ""

    @model_validator(mode="after")
    def _plan_leads_from_least_to_most(self) -> UntilDecided:
        blocks = [look.blocks for look in self.plan]
        ends = (blocks[0], blocks[-1])
        if ends != (self.least_blocks, self.most_blocks) or blocks != sorted(set(blocks)):
            raise ValueError(
                f"plan looks after {blocks} blocks: these numbers must rise from "
                f"{self.least_blocks} to {self.most_blocks}"
            )
        if sum(look.share for look in self.plan) > 1 + SHARE_ROUNDING:
            raise ValueError("plan gives its looks shares of the error that add up to more than 1")
        return self

    def is_due(self, blocks: int) -> bool:
        """Return whether a look is planned after ``blocks``."""
        return any(look.blocks == blocks for look in self.plan)

    def next_look(self, blocks: int) -> int:
        """Return the number of blocks of the next planned look; ``most_blocks`` after the last."""
        ahead = (look.blocks for look in self.plan if look.blocks > blocks)
        return next(ahead, self.most_blocks)

    def judged_blocks(self, blocks: int) -> int:
        """Return how many of the ``blocks`` are compared: those of the last look.

        Later blocks count at the next look, so nobody can look in between. Before the first look
        all blocks are compared.
        """
        return max((look.blocks for look in self.plan if look.blocks <= blocks), default=blocks)

    def looked(self, blocks: int, undecided: tuple[str, ...]) -> UntilDecided:
        """Return the rule with one more look, or with the last one repeated after a resume."""
        earlier = tuple(look for look in self.looks if look.blocks < blocks)
        ended: Ending = "" if undecided else "decided"
        if undecided and blocks >= self.most_blocks:
            ended = "most blocks"
        look = Look(blocks=blocks, undecided=undecided)
        return self.model_copy(update={"looks": (*earlier, look), "ended": ended})

    def text(self) -> str:
        """Return how the run came to its number of blocks, in a few words."""
        if not self.looks:
            return f"until decided, at most {self.most_blocks}"
        last = self.looks[-1]
        names = "" if self.ended == "decided" else f"; not decided: {', '.join(last.undecided)}"
        return f"until decided: after {last.blocks} of at most {self.most_blocks}{names}"


@dataclass(frozen=True)
class LooksTaken:
    """The looks at a contrast so far: their rule, and the usable blocks at each look."""

    rule: UntilDecided
    counts: tuple[int, ...] = ()

    @property
    def shares(self) -> tuple[float, ...]:
        """Return each look's share of the error."""
        return tuple(look.share for look in self.rule.plan[: len(self.counts)])

    def text(self, n: int) -> str:
        """Return the planned looks, and that n blocks counted, in a few words."""
        *earlier, last = (str(look.blocks) for look in self.rule.plan)
        listed = " and ".join(filter(None, [", ".join(earlier), last]))
        return f"looks after {listed} blocks, {n} of at most {self.rule.most_blocks} counted"


def planned(least: int, most: int) -> UntilDecided:
    """Return the rule of a run of ``least`` to ``most`` blocks: its looks and their shares.

    Looks are evenly spread, at most 6 blocks apart. The first has 5/16 of the error, or as much as
    the smallest p of its blocks needs; the shares of the others grow evenly.
    """
    gaps = math.ceil((most - least) / APART)
    blocks = [*(round(least + (most - least) * gap / gaps) for gap in range(gaps)), most]
    plan = tuple(
        PlannedLook(blocks=count, share=share)
        for count, share in zip(blocks, _shares(least, gaps), strict=True)
    )
    return UntilDecided(least_blocks=least, most_blocks=most, plan=plan)


def _shares(least: int, later: int) -> list[float]:
    """Return the shares of the first look and of the ``later`` ones."""
    if not later:
        return [1.0]
    needed = 2.0 ** (1 - least) / ERROR if least >= FEWEST_THAT_SHOW else 0.0
    first = max(FIRST_SHARE, needed)
    steps = later * (later + 1) / 2
    return [first, *((1 - first) * step / steps for step in range(1, later + 1))]


def at_last_look(by_block: pd.Series[Any], rule: UntilDecided) -> tuple[pd.Series[Any], LooksTaken]:
    """Return the blocks up to the last look (all, before the first), and the looks.

    ``by_block`` has an entry for every block so far; NaN where a block lacks a side.
    """
    due = [look.blocks for look in rule.plan if look.blocks <= len(by_block)]
    if not due:
        return by_block, LooksTaken(rule)
    counts = tuple(int(by_block.iloc[:blocks].notna().sum()) for blocks in due)
    return by_block.iloc[: due[-1]], LooksTaken(rule, counts)


def interval(
    x: np.ndarray, confidence: float, looks: LooksTaken
) -> tuple[float, float, float] | None:
    """Return low, high and the achieved confidence of all looks together.

    ``x`` are the log ratios or differences of the blocks that count, in any order. None before the
    first look, and where no sum of so few ranks is as unlikely as the look's share demands.
    """
    sums = ending_sums(1 - confidence, looks.counts, looks.shares)
    if not sums or not sums[-1]:
        return None
    averages, k = signed_rank.walsh_averages(x), sums[-1] - 1
    achieved = 1 - error_that_ends(k, looks.counts, looks.shares)
    return float(averages[k]), float(averages[-1 - k]), achieved


def p_value(x: np.ndarray, looks: LooksTaken) -> float:
    """Return the two-sided p-value of a centre of 0, whichever look the run stops at."""
    if not looks.counts:
        return 1.0
    return error_that_ends(signed_rank.smaller_sum(x), looks.counts, looks.shares)


def smallest_p(looks: LooksTaken) -> float:
    """Return the smallest two-sided p-value that the last look could have; 1 before the first."""
    return error_that_ends(0, looks.counts, looks.shares) if looks.counts else 1.0


def ending_sums(
    error: float, counts: tuple[int, ...], shares: tuple[float, ...]
) -> tuple[int, ...]:
    """Return for each look how many of the lowest sums of ranks, and of the highest, end a run.

    ``error`` is how often all looks together may show a difference between equal treatments;
    ``counts`` and ``shares`` are the usable blocks at each look, and its share of the error.
    """
    sums: tuple[int, ...] = ()
    for look, share in enumerate(shares, start=1):
        alive = going_on(counts[:look], sums)
        # Both tails; the runs that an earlier look ended are in neither.
        tails = 2 * np.cumsum(alive)[: len(alive) // 2]
        allowed = error * share * (1 + signed_rank.ROUNDING)
        sums += (int(np.searchsorted(tails, allowed, side="right")),)
    return sums


@lru_cache(maxsize=65_536)
def error_that_ends(w: int, counts: tuple[int, ...], shares: tuple[float, ...]) -> float:
    """Return the smallest error of all looks with which a sum of w ends a run at the last one.

    The search halves an interval; 1 if no error is large enough.
    """
    low, high = 0.0, 1.0
    if ending_sums(high, counts, shares)[-1] <= w:
        return 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if ending_sums(middle, counts, shares)[-1] > w:
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=512)
def going_on(counts: tuple[int, ...], sums: tuple[int, ...]) -> np.ndarray:
    """Return the distribution of the sum of ranks at the last look, of runs that got there.

    ``sums`` are those of :func:`ending_sums` at the looks before, one fewer than ``counts``.
    """
    if not sums:
        alive, done = np.ones(1), 0
    else:
        alive, done = going_on(counts[:-1], sums[:-1]).copy(), counts[-2]
        # The k lowest sums, and by symmetry the k highest, ended the run.
        if k := sums[-1]:
            alive[:k] = alive[-k:] = 0.0
    # The newest block has the highest rank.
    return signed_rank.with_ranks(alive, done, counts[-1])
