"""Two runs of one experiment: may they be compared, and what changed between them?

Trials of two runs share no block, so nothing pairs them: drift of the machine between the runs
counts as change. That is why what is known of the drift (CPU speed, flush cost) stands beside the
verdict, and why treatments that can be interleaved belong into one run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from perflab.analysis.methods.comparison import CONFIDENCE, benjamini_hochberg
from perflab.analysis.trials.summary import measured_responses
from perflab.errors import AnalysisError
from perflab.recordings import FREE_PARAMETERS, Response, Run

DRIFTS = {"cpu_probe_ms": "CPU-speed probe", "flush_p50_us": "disk flush"}
MAX_DRIFT = 1.1
EXACT_PRODUCT = 2500
COLUMNS = [
    "treatment", "response", "ratio", "low", "high", "n_a", "n_b", "p_adjusted", "worse_by",
    "verdict",
]  # fmt: skip


@dataclass(frozen=True)
class RunComparison:
    """What changed from run A to run B.

    ``obstacles`` say why the runs are not comparable (empty: they are); ``notes`` what else
    differs. ``table`` has a row per treatment and response: the ratio B / A with its interval,
    ``worse_by`` (above 1: B is worse) and a verdict (better, worse, unclear).
    """

    obstacles: tuple[str, ...]
    notes: tuple[str, ...]
    table: pd.DataFrame

    def worse(self, factor: float) -> pd.DataFrame:
        """Return the rows that are certainly worse, and by at least ``factor``."""
        found = self.table
        return found[(found["verdict"] == "worse") & (found["worse_by"] >= factor)]


def compare_runs(a: Run, b: Run) -> RunComparison:
    """Compare two runs, treatment by treatment, on their valid trials."""
    obstacles = tuple(_obstacles(a, b))
    if obstacles:
        return RunComparison(obstacles, (), pd.DataFrame(columns=COLUMNS))
    trials = a.valid_trials(), b.valid_trials()
    rows = [
        _row(treatment.name, response, *trials)
        for treatment in a.record.treatments
        for response in _compared(a, b)
    ]
    table = pd.DataFrame([row for row in rows if row is not None], columns=COLUMNS)
    table["p_adjusted"] = benjamini_hochberg(table["p_adjusted"].tolist())
    table["verdict"] = [_verdict(row) for row in table.to_dict("records")]
    return RunComparison((), tuple(_notes(a, b, *trials)), table)


def _compared(a: Run, b: Run) -> list[Response]:
    """Return the typical responses of both of which more or less is better."""
    theirs = measured_responses(b)
    own = measured_responses(a).items()
    return [each for name, each in own if name in theirs and each.better != "neither"]


def _obstacles(a: Run, b: Run) -> list[str]:
    one, other = a.record, b.record
    if one.experiment != other.experiment:
        return [f"A is of '{one.experiment}', B of '{other.experiment}'"]
    found = []
    if one.backend != other.backend:
        found.append(f"A ran on {one.backend}, B on {other.backend}")
    machines = one.environment.get("machine"), other.environment.get("machine")
    if machines[0] != machines[1]:
        found.append(f"the machine differs: {_difference(*machines)}")
    names = {*one.parameters, *other.parameters} - set(FREE_PARAMETERS)
    for name in sorted(names):
        first, second = one.parameters.get(name), other.parameters.get(name)
        if first != second:
            found.append(f"parameter {name} is {first!r} in A and {second!r} in B")
    if {item.name for item in one.treatments} != {item.name for item in other.treatments}:
        found.append("they have different treatments")
    return found


def _difference(first: Any, second: Any) -> str:
    if isinstance(first, dict) and isinstance(second, dict):
        keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
        return ", ".join(f"{key} {first.get(key)} and {second.get(key)}" for key in keys)
    return f"{first} and {second}"


def _notes(a: Run, b: Run, first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    notes = ["trials of two runs share no block: a drift of the machine counts as change"]
    for name, what in DRIFTS.items():
        if name not in first or name not in second:
            continue
        before, after = float(first[name].median()), float(second[name].median())
        if before > 0 and after > 0 and not 1 / MAX_DRIFT < after / before < MAX_DRIFT:
            notes.append(f"{what}: median {before:.3g} in A, {after:.3g} in B")
    if a.record.code.get("fingerprint") != b.record.code.get("fingerprint"):
        notes.append("the code that measures, or a service, changed between the runs")
    packages = a.record.environment.get("packages"), b.record.environment.get("packages")
    if packages[0] != packages[1]:
        notes.append(f"packages differ: {_difference(*packages)}")
    return notes


def _row(
    treatment: str,
    response: Response,
    first: pd.DataFrame,
    second: pd.DataFrame,
) -> dict[str, Any] | None:
    sides = [
        own.loc[own["treatment"] == treatment, response.name].dropna().to_numpy(float)
        for own in (first, second)
    ]
    if not all(len(side) and (side > 0).all() for side in sides):
        return None
    ratio, low, high, p = unpaired(sides[1], sides[0])
    return {
        "treatment": treatment,
        "response": response.name,
        "ratio": ratio,
        "low": low,
        "high": high,
        "n_a": len(sides[0]),
        "n_b": len(sides[1]),
        "p_adjusted": p,
        "worse_by": 1 / ratio if response.better == "more" else ratio,
        "verdict": "",
    }


def _verdict(row: dict[Any, Any]) -> str:
    certain = row["low"] > 1 or row["high"] < 1
    if not certain or not row["p_adjusted"] <= 1 - CONFIDENCE:
        return "unclear"
    return "worse" if row["worse_by"] > 1 else "better"


def unpaired(
    numerator: Sequence[float] | np.ndarray, denominator: Sequence[float] | np.ndarray
) -> tuple[float, float, float, float]:
    """Return ratio, 95% low, 95% high and p-value of two independent samples of trials.

    Hodges-Lehmann shift of the logs with the interval that inverts the exact rank-sum test; where
    the samples are too small for one (below 4 and 4), Welch's t on the logs; with one trial on a
    side there is no interval (NaN). Source: M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric
    Statistical Methods, 3rd ed. 2014, sections 4.1 to 4.3.

    Raises
    ------
    AnalysisError
        A side is empty, or a value is not positive and finite.
    """
    x, y = (np.log(_positive(side)) for side in (numerator, denominator))
    differences = np.sort((x[:, None] - y[None, :]).ravel())
    estimate = math.exp(float(np.median(differences)))
    if min(len(x), len(y)) < 2:
        return estimate, math.nan, math.nan, math.nan
    k = _critical(len(x), len(y))
    if k >= 0:
        p = float(stats.mannwhitneyu(x, y).pvalue)
        return estimate, math.exp(differences[k]), math.exp(differences[-1 - k]), p
    if not (x.std() > 0 or y.std() > 0):
        return estimate, estimate, estimate, float(estimate == 1)
    welch = stats.ttest_ind(x, y, equal_var=False)
    interval = welch.confidence_interval(CONFIDENCE)
    middle = math.exp(float(x.mean() - y.mean()))
    return middle, math.exp(interval.low), math.exp(interval.high), float(welch.pvalue)


def _positive(side: Sequence[float] | np.ndarray) -> np.ndarray:
    values: np.ndarray = np.asarray(side, dtype=float)
    values = values[~np.isnan(values)]
    if not len(values):
        raise AnalysisError("a side has no trial; there is nothing to compare")
    if not ((values > 0) & np.isfinite(values)).all():
        raise AnalysisError("a ratio needs positive, finite values")
    return values


@lru_cache(maxsize=64)
def _critical(n: int, m: int) -> int:
    """Return the largest u with P(U <= u) <= 2.5%, -1 where there is none."""
    tail = (1 - CONFIDENCE) / 2
    if n * m > EXACT_PRODUCT:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        return math.floor(n * m / 2 + float(stats.norm.ppf(tail)) * deviation - 0.5)
    counts = np.cumsum(_rank_sum_counts(n, m))
    cdf: np.ndarray = counts / counts[-1]
    return int(np.searchsorted(cdf, tail * (1 + 1e-12), side="right")) - 1


def _rank_sum_counts(n: int, m: int) -> np.ndarray:
    """Return how many of the orders of n and m values give each U: Gauss's binomial."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1.0
    for j in range(1, n + 1):
        # Multiply by (1 - q^(m + j)), then divide by (1 - q^j).
        longer = counts.copy()
        longer[m + j :] -= counts[: max(0, len(counts) - m - j)]
        for at in range(j, len(longer)):
            longer[at] += longer[at - j]
        counts = longer
    return counts
