"""The one rule for steadiness: did response times stay the same over the loads of a treatment?

Where response times rise or fall over a load, they depend on its length, and no number stands for
all lengths. An unsteady load moves the same way in every block; a disturbed machine moves loads
both ways. So trends are judged over a treatment's blocks, as log ratios of end to beginning:

- The **treatment** is refused, with all its trials, where the mean trend is beyond a tenth either
  way, or where its 90% interval (Student's t) reaches beyond a factor of 1.5: it is unknown.
- One **trial** is refused by itself only where its trend is clear and beyond a factor of 1.5. The
  mean of a load lies at most half its trend away from either end: 1.22, within the factor of 1.25
  that published sizes are granted. In simulations the limit of 1.5 finds the most true effects
  (``benchmarks/steadiness.py``): a smaller one costs blocks, a larger one lets noise in. Such a
  trial still counts for its treatment, with a factor of 1.5.
- A treatment with fewer than three trends has no useful interval. Then a clear trend beyond a tenth
  refuses each trial by itself, as ``perflab load`` judges its only load.

A wider interval around the same mean never refuses less. Limits on both the estimate and its
interval are used to compare highly variable drugs: S. H. Haidar et al., Pharm. Res. 25, 2008.
``docs/what-may-be-trusted.md`` says how often each drift is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.recordings.schema import Reason, Remark

# The column with the trend of a trial, and the codes of the two remarks on it.
TREND = "response_log_trend"
OF_LOAD, OF_TREATMENT = "load.trend", "treatment.trend"
MAX_TREND = math.log(1.1)
GROSS_TREND = math.log(1.5)
SMALLEST_N = 3
CONFIDENCE = 0.90
WAY_OUT = "a longer warm-up leaves less drift, and more blocks tell a drift from chance"


@dataclass(frozen=True)
class TrendOverBlocks:
    """The mean log trend of a treatment's loads with its 90% interval (NaN below two blocks)."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether the interval excludes gross drift."""
        return self.low >= -GROSS_TREND and self.high <= GROSS_TREND

    @property
    def refused(self) -> bool:
        """Whether the treatment is compared with nothing."""
        return abs(self.mean) > MAX_TREND or not self.known

    def __str__(self) -> str:
        mean, low, high = (
            f"{math.expm1(trend):+.0%}" for trend in (self.mean, self.low, self.high)
        )
        drifted = abs(self.mean) > MAX_TREND
        sentence = (
            "the loads were not steady"
            if drifted
            else "it is unknown whether the loads were steady"
        )
        sentence += f": over {self.n} blocks response times changed by {mean} [{low}, {high}] from"
        return f"{sentence} begin to end"


def over_blocks(trends: Sequence[float]) -> TrendOverBlocks:
    """Return the mean of the log trends of blocks; gross ones count as a factor of 1.5."""
    from scipy import special

    x = np.clip(np.asarray(trends, dtype=float), -GROSS_TREND, GROSS_TREND)
    if len(x) < 2:
        return TrendOverBlocks(float(x.mean()) if len(x) else math.nan, math.nan, math.nan, len(x))
    # scipy.stats has this quantile too, but takes longer to import than everything else here.
    half = special.stdtrit(len(x) - 1, (1 + CONFIDENCE) / 2) * x.std(ddof=1) / math.sqrt(len(x))
    mean = float(x.mean())
    return TrendOverBlocks(mean, mean - float(half), mean + float(half), len(x))


def judged(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a run's trials with those ``invalid`` that this rule refuses, and why.

    Trials without a trend (too few requests, or a load that rises by plan) stay as they are. So do
    trials that are refused for another reason; they do not count here.
    """
    if TREND not in trials:
        return trials
    # The recording of another user may hold anything in this column.
    known = trials.assign(**{TREND: pd.to_numeric(trials[TREND], errors="coerce")})
    rows = known.to_dict("records")
    by_treatment: dict[str, list[dict[Any, Any]]] = {}
    for row in filter(_counts, rows):
        by_treatment.setdefault(row["treatment"], []).append(row)
    for treatment_rows in by_treatment.values():
        _judge(treatment_rows)
    columns = ("state", "reasons", "warnings")
    return trials.assign(**{name: [row[name] for row in rows] for name in columns})


def told(trials: pd.DataFrame) -> list[Remark]:
    """Return a remark for every refused treatment; ``trials`` were judged before."""
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
    """Return whether a trial has a trend and is not refused for another reason."""
    if row["superseded"] or row["state"] == "failed" or not math.isfinite(row[TREND]):
        return False
    return all(reason.code == OF_LOAD for reason in row["reasons"])


def _judge(rows: Sequence[dict[Any, Any]]) -> None:
    """Refuse all trials of a treatment, or with few trials each one by its own warning."""
    valid = [row for row in rows if row["state"] == "valid"]
    if len(rows) < SMALLEST_N:
        for row in valid:
            _refuse(row, *(remark for remark in row["warnings"] if remark.code == OF_LOAD))
        return
    trend = over_blocks([row[TREND] for row in rows])
    if trend.refused:
        for row in valid:
            _refuse(row, Remark(code=OF_TREATMENT, text=str(trend)))


def _refuse(row: dict[Any, Any], *remarks: Remark) -> None:
    """Make remarks the reasons that refuse a trial; they are then no warnings."""
    for remark in remarks:
        row["state"] = "invalid"
        row["reasons"] = [*row["reasons"], Reason.model_validate(remark.model_dump())]
        row["warnings"] = [other for other in row["warnings"] if other.code != remark.code]
