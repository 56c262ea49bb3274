"""Several claims tested at once: p-values corrected, and what each claim then needs by itself.

A verdict's direction and a decision "different" need the interval to exclude no effect and the
p-value, adjusted over the claims of the run about the same response, to be 0.05 at most: of the
effects so found, at most one in twenty is expected to be none.

A family is a response: what lowers the p90, say. Claims about several responses are several
questions, each of which keeps its rate of false discoveries by itself (B. Efron, Ann. Appl. Stat.
2, 2008: classes that differ are corrected apart). All of them together keep it where some effects
are there; where none is, one run of six tells a false direction about some of four responses
(``docs/what-the-lab-can-resolve.md``). The percentiles of one step are no new steps: in one family
with them, eight blocks, of which no p is below 0.0078, could show no single step of a ladder, be it
ever so large.

Why not intervals widened for the selection (Y. Benjamini, D. Yekutieli, JASA 100, 2005), for both
parts of a verdict: with R of m claims found they stand at 1 - 0.05 R/m, and at 8 blocks the
signed-rank test has no interval above 99.2%. With one effect among seven claims nothing could be
said of any size then, not even of one that is plainly contradicted; so only the direction is lost.
The size is judged claim by claim, and said to be: where the truth lies just outside the zone of the
published size, up to one claim in twenty is found to agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflab.analysis.methods.comparison import (
    SMALLEST_SIGNED_RANK,
    USUAL_P,
    benjamini_hochberg,
)
from perflab.numerals import counted


@dataclass(frozen=True)
class Corrected:
    """The p-value of a claim, and the same adjusted over the ``claims`` tested beside it."""

    p_value: float
    adjusted: float
    claims: int

    @property
    def holds(self) -> bool:
        """Whether the claim is found, all those beside it allowed for."""
        return self.adjusted <= USUAL_P

    @property
    def own_level(self) -> float:
        """Return which p-value this claim would need, were all others as they are."""
        return USUAL_P * self.p_value / self.adjusted if self.adjusted > 0 else USUAL_P

    def text(self) -> str:
        """Return ``p, adjusted for 15 claims, is 0.12``."""
        return f"p, adjusted for {counted(self.claims, 'claim')}, is {self.adjusted:.2g}"


def corrected(p_values: Sequence[float], families: Sequence[str] | None = None) -> list[Corrected]:
    """Return every p-value of a run with its adjusted one (NaN: not tested, and not counted).

    ``families`` names the family of each p-value; without them, all are of one.
    """
    p = np.asarray(p_values, dtype=float)
    of = np.asarray(families if families is not None else [""] * len(p), dtype=object)
    found: dict[int, Corrected] = {}
    for family in dict.fromkeys(of):
        places = np.flatnonzero(of == family)
        claims = int(np.isfinite(p[places]).sum())
        adjusted = benjamini_hochberg(p[places].tolist())
        for place, own in zip(places, adjusted, strict=True):
            found[int(place)] = Corrected(float(p[place]), own, claims)
    return [found[place] for place in range(len(p))]


def blocks_for_one(claims: int) -> int:
    """Return how many blocks can show one effect among so many claims, were it ever so large.

    The signed-rank test of n blocks has no p below 2 / 2^n.
    """
    return max(SMALLEST_SIGNED_RANK, math.ceil(math.log2(2 * claims / USUAL_P)))
