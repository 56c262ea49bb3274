"""The starts of services in a run: where several blocks share one, the start is the unit.

Two processes of one program differ by 1 to 2% for as long as they live. Blocks that share a start
share this difference, so that they count once: their log ratios are averaged. Where the services
started once in all, an interval is about that start alone, and its scope says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from perflab.recordings import Run
from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import Effect, Scale, effect_within

# The column of trials that numbers the starts of a run.
START = "start"
ONE_START = "for one start of the services; another may differ by 1 to 2%"


def starts_of(run: Run) -> pd.Series[int] | None:
    """Return a number for each judged block, equal for blocks that share a start of the services.

    None if the block is the unit: each has a start of its own, or all have the same.
    """
    every = _every(run)
    if every < 2:
        return None
    trials, blocks = run.current_trials(), pd.RangeIndex(run.judged_blocks)
    starts = trials.get(START)
    if starts is None or starts.isna().any():
        # Neither other tools nor earlier recordings number the starts.
        starts = trials["block"] // every
    groups = _joined(set(of_block) for _, of_block in starts.groupby(trials["block"]))
    numbers = {start: number for number, group in enumerate(groups) for start in group}
    by_block = starts.map(numbers).groupby(trials["block"]).first().reindex(blocks, fill_value=-1)
    return by_block if len(groups) > 1 else None


def _every(run: Run) -> int:
    """Return before every how many blocks the services of a run start; 0: once."""
    return int(run.record.parameters.get("fresh_blocks", 1))


def _joined(sets: Iterable[set[Any]]) -> list[set[Any]]:
    """Return disjoint sets: those that share a member are joined.

    Services that failed start in the middle of a block, which then belongs to two starts.
    """
    joined: list[set[Any]] = []
    for one in sets:
        apart = [other for other in joined if not one & other]
        joined = [*apart, one.union(*(other for other in joined if one & other))]
    return joined


def has_one_start(run: Run, treatments: Collection[str] = ()) -> bool:
    """Return whether all blocks share a start of the services, or of one of the ``treatments``.

    The lab starts no service of a treatment that has a target.
    """
    of_targets = {item.name for item in run.record.treatments if "target" in item.parts}
    if of_targets & set(treatments):
        return True
    every = _every(run)
    return every == 0 or (every > 1 and starts_of(run) is None)


def effect_of_run(run: Run, by_block: Ends | pd.Series[Any], scale: Scale = "ratio") -> Effect:
    """Return the effect of a run from the log ratios, or differences, of its blocks.

    ``by_block`` is indexed by block; see :func:`perflab.statistics.comparison.effect_within` for
    the effect and its errors.
    """
    ends = by_block if isinstance(by_block, Ends) else Ends(by_block, by_block)
    starts = starts_of(run)
    if starts is None:
        return effect_within(ends, scale, run.record.until_decided)
    effect = effect_within(ends.mean_by(starts), scale)
    return replace(effect, of_blocks=int(ends.low.notna().sum()))
