"""A treatment's median over its valid trials, with the interval that n allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from perflab.recordings import Run


@dataclass(frozen=True)
class Median:
    """Median of n trials; the interval is None where n is too small for 95%."""

    value: float
    low: float | None
    high: float | None
    n: int

    def text(self, form: str) -> str:
        """Return two lines: the median, then its interval or why there is none, and n."""
        if self.low is None or self.high is None:
            return f"{form.format(self.value)}\nn = {self.n}, too small\nfor an interval"
        interval = f"[{form.format(self.low)}, {form.format(self.high)}]"
        return f"{form.format(self.value)}\n{interval}\nn = {self.n}"


def medians(run: Run, response: str) -> dict[str, Median]:
    """Return the median of ``response`` for every treatment that has a valid trial."""
    valid = run.valid_trials()
    found = {}
    for name, group in valid.groupby("treatment", sort=False) if len(valid) else ():
        values = np.sort(group[response].dropna().to_numpy(float))
        if len(values):
            found[str(name)] = _median(values)
    return found


def _median(v):
    n = len(v)
    k = int(stats.binom.ppf(0.025, n, 0.5))
    if k == 0:
        return Median(float(np.median(v)), None, None, n)
    return Median(float(np.median(v)), float(v[k - 1]), float(v[n - k]), n)
