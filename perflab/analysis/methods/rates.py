"""Shares of cases: k of n, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from perflab.analysis.methods.comparison import CONFIDENCE


@dataclass(frozen=True)
class Rate:
    """A share of cases with its exact 95% interval: 4 of 4 are 100% [40%, 100%].

    Source: C. J. Clopper, E. S. Pearson, Biometrika 26, 1934.
    """

    hits: int
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """Return low and high; (0, 1) without a case."""
        from scipy import stats

        if not self.n:
            return 0.0, 1.0
        found = stats.binomtest(self.hits, self.n).proportion_ci(CONFIDENCE, "exact")
        return float(found.low), float(found.high)

    def text(self) -> str:
        """Return ``2 of 24: 8% [1%, 27%]``."""
        if not self.n:
            return "no case"
        return f"{self.hits} of {self.n}: {self.hits / self.n:.0%} {self.bounds()}"

    def bounds(self) -> str:
        """Return ``[1%, 27%]``."""
        low, high = self.interval
        return f"[{low:.0%}, {high:.0%}]"
