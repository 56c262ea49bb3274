"""The correction of p-values for several claims.

A direction, and a difference, need a p-value of at most 0.05 after adjustment over the
claims of the run about one response, its family (``docs/explanation/verdicts.md``). Each response
keeps its own rate of false discoveries (B. Efron, Ann. Appl. Stat. 2, 2008: classes that differ are
corrected apart). Sizes are not corrected: at 8 blocks the signed-rank test has no interval above
99.2%, so intervals widened for the selection (Y. Benjamini, D. Yekutieli, JASA 100, 2005) could
judge no size with one effect among seven claims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.statistics.comparison import USUAL_P, benjamini_hochberg
from perflab.statistics.in_words import counted
from perflab.statistics.mean_intervals import SMALLEST_SIGNED_RANK
from perflab.statistics.signed_rank import ROUNDING


@dataclass(frozen=True)
class Corrected:
    """The p-value of a claim, and the same adjusted over the ``claims`` of its family."""

    p_value: float
    adjusted: float
    claims: int

    @property
    def holds(self) -> bool:
        """Whether the adjusted p-value is 0.05 at most."""
        return self.adjusted <= USUAL_P

    @property
    def needed_p(self) -> float:
        """Return the p-value that this claim would need if all others stayed as they are."""
        return USUAL_P * self.p_value / self.adjusted if self.adjusted > 0 else USUAL_P

    def text(self) -> str:
        """Return ``p, adjusted for 15 claims, is 0.12``."""
        return f"p, adjusted for {counted(self.claims, 'claim')}, is {self.adjusted:.2g}"


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted over a family, so that any false one is rare; NaNs are ignored.

    Those up to 0.05 hold together: where nothing differs, at most one family in twenty has any.
    Source: S. Holm, Scand. J. Stat. 6, 1979.
    """
    p = pd.Series(p_values, dtype=float)
    known = p.dropna().sort_values()
    adjusted = (known * np.arange(len(known), 0, -1)).cummax().clip(upper=1.0)
    return [float(value) for value in adjusted.reindex(p.index)]


def corrected(
    p_values: Sequence[float],
    families: Sequence[str] | None = None,
    adjust: Callable[[Sequence[float]], list[float]] = benjamini_hochberg,
) -> list[Corrected]:
    """Return every p-value of a run with its adjusted one (NaN: not tested, not counted).

    ``families`` names the family of each p-value; without it all p-values are one family.
    """
    family = "" if families is None else list(families)
    table = pd.DataFrame({"p": np.asarray(p_values, dtype=float), "family": family})
    of_family = table.groupby("family")["p"]
    table["adjusted"] = of_family.transform(lambda p: pd.Series(adjust(p.tolist()), index=p.index))
    table["claims"] = of_family.transform("count")
    return [Corrected(p, adjusted, int(n)) for p, _, adjusted, n in table.itertuples(index=False)]


def blocks_for_one(claims: int, level: float = USUAL_P, sides: int = 2) -> int:
    """Return the fewest blocks that can show one effect, however large, among ``claims``.

    ``level`` is that of all claims together, and ``sides`` those on which an effect may lie.
    """
    blocks = SMALLEST_SIGNED_RANK
    while claims * sides * smallest_p(blocks) > level * (1 + ROUNDING):
        blocks += 1
    return blocks


def smallest_p(blocks: int) -> float:
    """Return the smallest one-sided p-value that the signed-rank test of so many blocks has."""
    return 2.0**-blocks
