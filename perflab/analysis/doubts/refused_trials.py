"""What a comparison would be with its refused trials, where they may change it.

A trial is refused for a reason that may go with its result: a late client, a queue that grows, a
process that was lost. If it is the slow trials of one side that are refused, the side looks faster
than it is. So a comparison is told twice, with its valid trials and with all that have a value,
where its sides have lost different numbers of trials, and where those that both have lost move an
end of its interval by more than the interval is wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
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


def refused_trials(
    run: Run,
    contrast: Contrast,
    used: pd.DataFrame,
    effect: Effect,
    effect_with: Callable[[pd.DataFrame], Effect],
) -> Refused | None:
    """Return the refused trials of a contrast if they may change it.

    ``used`` are the trials that were compared, with this effect, and ``effect_with`` returns the
    effect of others.
    """
    every = run.current_trials()
    columns = ["trial_id", "block", "treatment", contrast.response]
    trials = every[every.columns.intersection(columns)]
    trials = trials[trials["block"] < run.judged_blocks].drop_duplicates(
        ["block", "treatment"], keep="last"
    )
    refused = trials[~trials["trial_id"].isin(used["trial_id"])]
    of_side = {
        "/".join(levels.values()): refused["treatment"].isin(run.record.selected(levels))
        for levels in sides_of(contrast)[:2]
    }
    numbers = {name: int(is_of_side.sum()) for name, is_of_side in of_side.items()}
    if not any(numbers.values()):
        return None
    chosen = refused[pd.concat(of_side, axis=1).any(axis=1)]
    has_value = chosen.get(contrast.response, pd.Series(dtype=float)).notna()
    of_all = None
    if has_value.any():
        with suppress(AnalysisError):
            of_all = effect_with(every.loc[trials.index])
    if len(set(numbers.values())) == 1 and not (of_all and _is_far(of_all, effect)):
        return None
    return Refused(numbers, len(chosen) - int(has_value.sum()), of_all)


def _is_far(of_all: Effect, effect: Effect) -> bool:
    width = effect.high - effect.low
    if not math.isfinite(width):
        return (of_all.low, of_all.high) != (effect.low, effect.high)
    return of_all.low < effect.low - width or of_all.high > effect.high + width
