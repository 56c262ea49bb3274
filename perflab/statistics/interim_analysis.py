"""The signed-rank test for runs that are looked at several times and may stop at any look.

A run that goes on until something shows has many chances to see what is not there. Here the chances
are counted. Looks are few and planned, and each has a share of the error of all (K. K. G. Lan,
D. L. DeMets, Biometrika 70, 1983; exactly, for discrete tests: N. Stallard, S. Todd, Stat. Med. 19,
2000): at a look the exact signed-rank test ends as many runs between equal treatments, of those
that no earlier look ended, as its share of 5% allows. Inverted, these tests are repeated confidence
intervals, which hold at all looks at once and therefore at whichever the run stops at, whatever it
stops for (C. Jennison, B. W. Turnbull, J. R. Stat. Soc. B 51, 1989). The p-value of a look is the
smallest error of all looks with which this one would show a difference. It is valid at whichever
look the run stops (R. Johari, P. Koomen, L. Pekelis, D. Walsh, Oper. Res. 70, 2022), and at most
0.05 exactly where the 95% interval excludes no effect: what a look leaves of its share goes to no
other, so that a larger error never ends fewer runs at any look.

A block that lacks a side leaves its look with fewer blocks, and with its share: the chances are
counted for the blocks there are, and those before.

Assumed is what the order of trials, drawn anew in every block, provides: between equal treatments
either sign of a block's difference is as likely. Neither normal noise nor equal noise of all blocks
nor a steady machine is. How strongly the looks hang together depends on the order of the sizes of
the differences; they do least where every block differs by more than all before it. Then the newest
has the highest rank, the sum of signed ranks is a Markov chain, and the error of all looks is a sum
over its states. That is taken, so that 5% is what the least favourable order costs, and noise that
stays alike from block to block less. That it is the least favourable was searched, not proved:
``tests/statistics/test_repeated_looks.py`` tries all signs of short runs in other orders.

Which looks, and which shares, was chosen by simulation: ``docs/stopping.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from perflab.statistics import signed_rank
from perflab.statistics.until_decided import PlannedLook, UntilDecided

# Between two looks there are at most so many blocks.
APART = 6
# Of the error of all looks: at 5% it is the smallest p of 7 blocks, so that the first look of 8
# can show something though one block is spoilt, or beside a second claim.
FIRST_SHARE = 5 / 16
ERROR = 0.05
# Below so many blocks no share is large enough for the smallest p that there is.
FEWEST_THAT_SHOW = 6
# Tails are sums of dyadic fractions: allow for the last bits.
ROUNDING = 1e-12
HALVINGS = 52


@dataclass(frozen=True)
class Looked:
    """How a contrast was looked at: by which rule, and its usable blocks at each look so far."""

    rule: UntilDecided
    counts: tuple[int, ...] = ()

    @property
    def shares(self) -> tuple[float, ...]:
        """Return the shares that these looks have of the error."""
        return tuple(look.share for look in self.rule.plan[: len(self.counts)])

    def text(self, n: int) -> str:
        """Return which looks there may be, and that n blocks counted, in a few words."""
        *earlier, last = (str(look.blocks) for look in self.rule.plan)
        listed = " and ".join(filter(None, [", ".join(earlier), last]))
        return f"looks after {listed} blocks, {n} of at most {self.rule.most_blocks} counted"


def planned(least: int, most: int, apart: int = APART, first: float = FIRST_SHARE) -> UntilDecided:
    """Return the rule of a run of so many blocks: its looks and their shares of the error.

    Looks are evenly spread, at most 6 blocks apart. The first has 5/16 of the error, or what the
    smallest p of so few blocks needs; the shares of all others grow evenly. Another distance, and
    another first share, are for comparing (``benchmarks/stopping_table.py``).
    """
    gaps = math.ceil((most - least) / apart)
    blocks = [*(round(least + (most - least) * gap / gaps) for gap in range(gaps)), most]
    plan = tuple(
        PlannedLook(blocks=each, share=share)
        for each, share in zip(blocks, _shares(least, gaps, first), strict=True)
    )
    return UntilDecided(least_blocks=least, most_blocks=most, plan=plan)


def _shares(least: int, later: int, first: float) -> list[float]:
    """Return the shares of the first look and of so many later ones."""
    if not later:
        return [1.0]
    needed = 2.0 ** (1 - least) / ERROR if least >= FEWEST_THAT_SHOW else 0.0
    first = max(first, needed)
    steps = later * (later + 1) / 2
    return [first, *((1 - first) * step / steps for step in range(1, later + 1))]


def looked_at(by_block: pd.Series[Any], rule: UntilDecided) -> tuple[pd.Series[Any], Looked]:
    """Return the blocks that count by now, and how they were looked at.

    Parameters
    ----------
    by_block : Series
        An entry for every block so far, from the first on; NaN where a block lacks a side.
    """
    due = [look.blocks for look in rule.plan if look.blocks <= len(by_block)]
    if not due:
        return by_block, Looked(rule)
    counts = tuple(int(by_block.iloc[:blocks].notna().sum()) for blocks in due)
    return by_block.iloc[: due[-1]], Looked(rule, counts)


def interval(x: np.ndarray, confidence: float, looked: Looked) -> tuple[float, float, float] | None:
    """Return low, high and the achieved confidence of all looks together.

    None where this look has no interval: before the first, or where no sum of so few ranks is as
    unlikely as its share allows.

    Parameters
    ----------
    x : array, shape (n,)
        Log ratios or differences of the blocks that count, in any order.
    """
    sums = ending_sums(1 - confidence, looked.counts, looked.shares)
    if not sums or not sums[-1]:
        return None
    averages, k = signed_rank.walsh_averages(x), sums[-1] - 1
    achieved = 1 - error_that_ends(k, looked.counts, looked.shares)
    return float(averages[k]), float(averages[-1 - k]), achieved


def p_value(x: np.ndarray, looked: Looked) -> float:
    """Return the two-sided p-value of a centre of 0, whichever look the run stops at."""
    if not looked.counts:
        return 1.0
    return error_that_ends(signed_rank.smaller_sum(x), looked.counts, looked.shares)


def ending_sums(
    error: float, counts: tuple[int, ...], shares: tuple[float, ...]
) -> tuple[int, ...]:
    """Return for each look how many of the lowest sums of ranks, and of the highest, end a run.

    Parameters
    ----------
    error : float
        How often all looks together may show a difference between equal treatments.
    counts, shares : tuple
        The usable blocks at each look, and its share of the error.
    """
    sums: tuple[int, ...] = ()
    for look, share in enumerate(shares, start=1):
        alive = going_on(counts[:look], sums)
        # Both tails; those that an earlier look ended are in neither.
        tails = 2 * np.cumsum(alive)[: len(alive) // 2]
        allowed = error * share * (1 + ROUNDING)
        sums += (int(np.searchsorted(tails, allowed, side="right")),)
    return sums


@lru_cache(maxsize=65_536)
def error_that_ends(w: int, counts: tuple[int, ...], shares: tuple[float, ...]) -> float:
    """Return the smallest error of all looks with which a sum of w ends a run at the last one.

    It is found by halving; 1 where there is none.
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

    ``sums`` are those that ended runs at the looks before, one fewer than ``counts``.
    """
    if not sums:
        alive, done = np.ones(1), 0
    else:
        alive, done = going_on(counts[:-1], sums[:-1]).copy(), counts[-2]
        # The k lowest sums, and by symmetry the k highest, ended the run.
        if k := sums[-1]:
            alive[:k] = alive[-k:] = 0.0
    for rank in range(done + 1, counts[-1] + 1):
        longer = np.zeros(len(alive) + rank)
        # The newest block has the highest rank; that is in the sum with chance 1/2.
        longer[: len(alive)] += alive / 2
        longer[rank:] += alive / 2
        alive = longer
    return alive
