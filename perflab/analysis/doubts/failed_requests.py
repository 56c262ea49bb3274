"""What failed requests mean for a comparison: whether both sides fail alike, and exact counts.

Where up to a twentieth of the requests fail, times have two ends, because nobody knows how long a
request would have taken that failed (:mod:`perflab.load.records.times`). If the sides do not fail
alike, the requests that are left are not the same any more, and only failures are compared.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from perflab.analysis.blocks import sides_of
from perflab.errors import AnalysisError
from perflab.recordings import Contrast, Run
from perflab.recordings.responses import (
    FAILURES,
    OF_FAILURES,
    SOME_FAILED,
    resolution_column,
    split_request,
)
from perflab.statistics.in_words import counted

# From this difference of the shares on the sides do not fail alike.
MAX_APART = 0.01
PERCENT = 100


def refuse_unlike(run: Run, contrast: Contrast, trials: pd.DataFrame) -> None:
    """Raise AnalysisError if the sides of a contrast, in ``trials``, do not fail alike.

    Failures themselves are compared in any case, and nothing is said where the load is to end by
    failures.
    """
    if OF_FAILURES.fullmatch(split_request(contrast.response)[0]):
        return
    sides = {
        "/".join(levels.values()): trials[trials["treatment"].isin(run.record.selected(levels))]
        for levels in sides_of(contrast)
    }
    remarks = pd.concat([of_side["warnings"] for of_side in sides.values()])
    if not any(remark.code == SOME_FAILED for of_trial in remarks for remark in of_trial):
        return
    shares = {
        name: float(of_side["errors"].sum() / max(1, of_side["requests"].sum()))
        for name, of_side in sides.items()
    }
    if max(shares.values()) - min(shares.values()) < MAX_APART:
        return
    parts = [f"{PERCENT * share:.1f}% of the requests of {name}" for name, share in shares.items()]
    raise AnalysisError(
        f"{' and '.join(parts)} failed, and what fails takes another time: only failures are "
        f"compared where the sides are {counted(round(PERCENT * MAX_APART), 'point')} apart"
    )


def has_counts(contrast: Contrast, trials: pd.DataFrame) -> bool:
    """Return whether a contrast is the difference of shares whose requests were counted."""
    # Of all requests, or of those of one name.
    is_of_failures = split_request(contrast.response)[0] == FAILURES
    is_difference = is_of_failures and contrast.scale == "difference"
    return is_difference and resolution_column(contrast.response) in trials


def counts_of(
    run: Run, levels: Mapping[str, str], trials: pd.DataFrame, column: str = FAILURES
) -> pd.DataFrame:
    """Return the failed and all measured requests of a side in every block; NaN without a trial."""
    rows = trials[trials["treatment"].isin(run.record.selected(dict(levels)))]
    rows = rows.dropna(subset=[column])
    by_block = counts_of_trials(rows, column).groupby(rows["block"]).sum()
    return by_block.reindex(pd.RangeIndex(run.judged_blocks))


def counts_of_trials(rows: pd.DataFrame, column: str = FAILURES) -> pd.DataFrame:
    """Return the failed and all measured requests of trials, from their share and its step."""
    requests = (1 / rows[resolution_column(column)]).round()
    return pd.DataFrame({"failed": (rows[column] * requests).round(), "requests": requests})
