"""The log ratio, or difference, of a contrast in every block, between the ends of what is known.

A time may hold some of the client's own, and nobody knows how much: between nothing and the part
that the client found (:mod:`perflab.load.records.times`). So does the throughput of users who wait
for nothing but answers. The same client measures both sides, so that the part that counts is taken
to be alike on them: the interval holds the ratio of the values as they were measured, and of the
values less the client's part. Where that part is more than a tenth,
this is no longer assumed: each side may hold any of it, and the narrower interval is told beside.
``docs/explanation/verdicts.md`` has simulations.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.errors import AnalysisError
from perflab.recordings import Contrast, ContrastPair, Run
from perflab.recordings.responses import (
    MAX_CLIENT_SHARE,
    at_least_column,
    at_most_column,
    client_column,
    lower_end_column,
    resolution_column,
    without_client,
)
from perflab.statistics.block_ends import Ends, mean_of
from perflab.statistics.comparison import NOTHING_TO_COMPARE

# A column of trials that is not recorded: a known value less the client's part.
WITHOUT_CLIENT = "without the client"


def sides_of(contrast: Contrast) -> list[dict[str, str]]:
    """Return the levels that each side of a contrast selects, those of an interaction too.

    A level has one side.
    """
    if contrast.scale == "level":
        return [contrast.numerator]
    pairs = [contrast, contrast.interaction] if contrast.interaction else [contrast]
    return [levels for pair in pairs for levels in (pair.numerator, pair.denominator)]


def ends_of(run: Run, contrast: Contrast, trials: pd.DataFrame) -> tuple[Ends, Ends | None]:
    """Return the effect in every block (of a ratio its log); NaN if a side is missing.

    The second is None, or the ends if the client's part of a time is alike on all sides, where that
    is not assumed.
    """
    if trials.empty:
        raise AnalysisError(NOTHING_TO_COMPARE)
    response, client = contrast.response, client_column(contrast.response)
    if response not in trials.columns and at_least_column(response) not in trials.columns:
        raise AnalysisError(f"the trials have no column '{response}'")
    measured = _ends(run, contrast, trials)
    if client not in trials:
        return measured, None
    names = {name for levels in sides_of(contrast) for name in run.record.selected(levels)}
    of_sides = trials[trials["treatment"].isin(names)]
    share = (of_sides[client] / of_sides[response]).abs().groupby(of_sides["block"]).max()
    is_small = ~(share > MAX_CLIENT_SHARE).reindex(measured.low.index, fill_value=False)
    less = without_client(trials[response], trials[client].fillna(0.0))
    alike = measured.around(_ends(run, contrast, trials.assign(**{response: less})))
    if is_small.all():
        return alike, None
    apart = _ends(run, contrast, trials.assign(**{WITHOUT_CLIENT: less}))
    return alike.where(is_small, apart), alike


def _ends(run: Run, contrast: Contrast, trials: pd.DataFrame) -> Ends:
    """Return the effect in every block (of a ratio its log), as the trials have the response."""

    def above(pair: ContrastPair) -> Ends:
        return _by_block(run, pair.numerator, contrast, trials, "numerator")

    def of_pair(pair: ContrastPair) -> Ends:
        return above(pair).minus(_by_block(run, pair.denominator, contrast, trials, "denominator"))

    if contrast.scale == "level":
        return above(contrast)
    ends, other = of_pair(contrast), contrast.interaction
    if contrast.scale == "share":
        return ends.over(of_pair(other) if other else above(contrast))
    return ends.minus(of_pair(other)) if other else ends


def _by_block(
    run: Run, levels: dict[str, str], contrast: Contrast, trials: pd.DataFrame, side: str
) -> Ends:
    """Return the response per block (for ratios its log), the mean over the selected treatments.

    It is NaN in blocks that lack one of them.
    """
    names, response = run.record.selected(levels), contrast.response
    if not names:
        selection = ", ".join(f"{factor}={level}" for factor, level in levels.items())
        raise AnalysisError(f"no treatment of the run has {selection}")
    treatments = [_of_treatment(run, name, response, trials) for name in names]
    if contrast.scale != "ratio":
        return mean_of(treatments)
    if len(names) > 1 and any((ends.measured <= 0).any() for ends in treatments):
        raise AnalysisError(f"{response} is not positive in every trial; a ratio needs that")
    return mean_of([ends.logs(side) for ends in treatments])


def _of_treatment(run: Run, name: str, response: str, trials: pd.DataFrame) -> Ends:
    """Return a response per block between its ends.

    A value that was cut off has no upper end, or has its own; one that pauses may have raised has
    a lower end. The column ``WITHOUT_CLIENT`` is another end of a known one. A value from a coarse
    source may be off by half of its resolution.
    """
    ends = (at_least_column, resolution_column, at_most_column, lower_end_column)
    columns = [response, WITHOUT_CLIENT, *(column(response) for column in ends)]
    # Trials have a hundred columns: most are left where they are.
    rows = trials.loc[trials["treatment"] == name, ["block", *trials.columns.intersection(columns)]]
    rows = rows.set_index("block").reindex(pd.RangeIndex(run.judged_blocks))
    missing = pd.Series(np.nan, index=rows.index)
    known = rows.get(response, missing).astype(float)
    at_least = rows.get(at_least_column(response), missing).astype(float)
    step = rows.get(resolution_column(response), missing).astype(float).fillna(0.0)
    is_cut = known.isna() & at_least.notna()
    value = known.fillna(at_least)
    less = rows.get(WITHOUT_CLIENT, known).fillna(value)
    most = rows.get(at_most_column(response), missing).astype(float).fillna(value)
    # The client may have added to the lower end what it added to the value.
    least = rows.get(lower_end_column(response), missing).astype(float) * (less / value)
    low, high = pd.concat([value, less, least], axis=1).min(axis=1), most.where(most >= less, less)
    return Ends(low - step / 2, high.where(~is_cut, np.inf) + step / 2, value, step)
