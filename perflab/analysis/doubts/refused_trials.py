"""What a comparison would be with its refused trials, where one side has more of them.

A trial is refused for a reason that may go with its result: a late client, a queue that grows, a
process that was lost. If it is the slow trials of one side that are refused, the side looks faster
than it is. So a comparison whose sides have lost different numbers of trials is told twice: with
its valid trials, and with all that have a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from perflab.analysis.blocks import sides_of
from perflab.errors import AnalysisError
from perflab.recordings import Contrast, Run
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import counted


@dataclass(frozen=True)
class Refused:
    """The refused trials of both sides of a contrast, and the effect with their values.

    ``numbers`` are by side; ``effect`` is None where no refused trial has a value, and ``without``
    counts those that have none.
    """

    numbers: Mapping[str, int]
    without: int
    effect: Effect | None

    @property
    def text(self) -> str:
        """Return the numbers in words: ``refused: 2 trials of new, none of old``."""
        refused = [(counted(n, "trial") if n else "none", of) for of, n in self.numbers.items()]
        return f"refused: {', '.join(f'{n} of {of}' for n, of in refused)}"


def unequal(
    run: Run,
    contrast: Contrast,
    used: pd.DataFrame,
    effect_with: Callable[[pd.DataFrame], Effect],
) -> Refused | None:
    """Return the refused trials of a contrast if one side has more of them than the other.

    ``used`` are the trials that were compared, and ``effect_with`` returns the effect of others.
    """
    trials = run.current_trials()
    trials = trials[trials["block"] < run.judged_blocks].drop_duplicates(
        ["block", "treatment"], keep="last"
    )
    refused = trials[~trials["trial_id"].isin(used["trial_id"])]
    of_side = {
        "/".join(levels.values()): refused["treatment"].isin(run.record.selected(levels))
        for levels in sides_of(contrast)[:2]
    }
    numbers = {name: int(is_of_side.sum()) for name, is_of_side in of_side.items()}
    if len(set(numbers.values())) <= 1:
        return None
    chosen = refused[pd.concat(of_side, axis=1).any(axis=1)]
    has_value = chosen.get(contrast.response, pd.Series(dtype=float)).notna()
    effect = None
    if has_value.any():
        try:
            effect = effect_with(trials)
        except AnalysisError:
            effect = None
    return Refused(numbers, len(chosen) - int(has_value.sum()), effect)
