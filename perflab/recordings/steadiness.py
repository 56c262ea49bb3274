"""The one rule for steadiness: had the loads of a treatment response times of their own?

Where response times rise or fall over a load, one twice as long has others, and no number stands
for both. A load that is not steady moves the same way in every block; a machine that stirs moves
loads both ways. So trends are judged over a treatment's blocks, as log ratios of end to begin:

- The **treatment** is refused, with all its trials, where the mean trend is beyond a tenth either
  way, or where its 90% interval (Student's t) reaches beyond a factor of 1.5: then nobody knows.
- One **trial** is refused by itself only where its trend is clear and beyond a factor of 1.5. The
  mean of a load lies at most half its trend away from either end: 1.22, within the factor of 1.25
  that published sizes are granted. By simulation, refusing from 1.5 on finds most true effects
  (``benchmarks/steadiness.py``): less costs blocks, more lets noise in. Such a trial still counts
  for its treatment, with a factor of 1.5.
- A treatment with fewer than three trends has no interval worth the name: load by load, a clear
  trend beyond a tenth refuses the trial, as ``perflab load`` judges the only one it has.

A wider interval around the same mean refuses no less. A limit on the estimate beside one on its
interval is how drugs of great variability are compared: S. H. Haidar et al., Pharm. Res. 25, 2008.
How often which drift is refused: ``docs/what-may-be-trusted.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.recordings.schema import Reason, Remark

# The column of trials that have a trend, and the codes of what is held against them.
TREND = "response_log_trend"
OF_LOAD, OF_TREATMENT = "load.trend", "treatment.trend"
MAX_TREND = math.log(1.1)
GROSS_TREND = math.log(1.5)
SMALLEST_N = 3
CONFIDENCE = 0.90
WAY_OUT = "a longer warm-up leaves less of a drift, more blocks tell one from chance"


@dataclass(frozen=True)
class TrendOverBlocks:
    """The mean log trend of a treatment's loads with its 90% interval (NaN below two blocks)."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether the interval leaves gross drift out."""
        return self.low >= -GROSS_TREND and self.high <= GROSS_TREND

    @property
    def refused(self) -> bool:
        """Whether the treatment is compared with nothing."""
        return abs(self.mean) > MAX_TREND or not self.known

    def __str__(self) -> str:
        mean, low, high = (f"{math.expm1(each):+.0%}" for each in (self.mean, self.low, self.high))
        drifted = abs(self.mean) > MAX_TREND
        said = "the loads were not steady" if drifted else "whether the loads were steady is open"
        said += f": over {self.n} blocks response times changed by {mean} [{low}, {high}] from"
        return f"{said} begin to end"


def over_blocks(trends: Sequence[float]) -> TrendOverBlocks:
    """Return the mean of log trends, one of each block, gross ones counted as a factor of 1.5."""
    from scipy import special

    x = np.clip(np.asarray(trends, dtype=float), -GROSS_TREND, GROSS_TREND)
    if len(x) < 2:
        return TrendOverBlocks(float(x.mean()) if len(x) else math.nan, math.nan, math.nan, len(x))
    # scipy.stats has the quantile too, and takes longer to import than all of the record.
    half = special.stdtrit(len(x) - 1, (1 + CONFIDENCE) / 2) * x.std(ddof=1) / math.sqrt(len(x))
    mean = float(x.mean())
    return TrendOverBlocks(mean, mean - float(half), mean + float(half), len(x))


def judged(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a run's trials with those ``invalid`` that this rule refuses, and why.

    Trials without a trend (too few requests, a load that is to rise) stay as
    they are, and so do those of which something else is known to be wrong: they count for nothing.
    """
    if TREND not in trials:
        return trials
    # Somebody else's recording may hold anything there.
    known = trials.assign(**{TREND: pd.to_numeric(trials[TREND], errors="coerce")})
    rows = known.to_dict("records")
    by_treatment: dict[str, list[dict[Any, Any]]] = {}
    for row in filter(_counts, rows):
        by_treatment.setdefault(row["treatment"], []).append(row)
    for own in by_treatment.values():
        _judge(own)
    columns = ("state", "reasons", "warnings")
    return trials.assign(**{name: [row[name] for row in rows] for name in columns})


def told(trials: pd.DataFrame) -> list[Remark]:
    """Return a remark for every treatment that is refused, of trials that were judged."""
    texts = {
        row["treatment"]: reason.text
        for row in trials[~trials["superseded"]].to_dict("records")
        for reason in row["reasons"]
        if reason.code == OF_TREATMENT
    }
    return [
        Remark(code=OF_TREATMENT, text=f"{name} is compared with nothing: {text}; {WAY_OUT}")
        for name, text in texts.items()
    ]


def _counts(row: dict[Any, Any]) -> bool:
    """Say whether a trial has a trend, and nothing else is held against it."""
    if row["superseded"] or row["state"] == "failed" or not math.isfinite(row[TREND]):
        return False
    return all(reason.code == OF_LOAD for reason in row["reasons"])


def _judge(own: Sequence[dict[Any, Any]]) -> None:
    """Refuse the trials of a treatment together, or each by what it warns of itself."""
    valid = [row for row in own if row["state"] == "valid"]
    if len(own) < SMALLEST_N:
        for row in valid:
            _refuse(row, *(each for each in row["warnings"] if each.code == OF_LOAD))
        return
    found = over_blocks([row[TREND] for row in own])
    if found.refused:
        for row in valid:
            _refuse(row, Remark(code=OF_TREATMENT, text=str(found)))


def _refuse(row: dict[Any, Any], *against: Remark) -> None:
    """Hold something against a trial; what is a reason need not be a warning, too."""
    for each in against:
        row["state"] = "invalid"
        row["reasons"] = [*row["reasons"], Reason.model_validate(each.model_dump())]
        row["warnings"] = [other for other in row["warnings"] if other.code != each.code]
