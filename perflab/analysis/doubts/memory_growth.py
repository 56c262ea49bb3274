"""Memory that grows with the requests, compared so that nobody loses by serving more of them.

In a closed loop the faster side serves more requests in the same time, and more of its memory has
grown when it is read. So both sides are compared after equally many requests: each side's memory
less its growth a request times what it served beyond the other.

Where the memory of a side still grows at the end of its loads, that ratio is one of the length of
the load: over more and more requests it moves towards the ratio of the growths. The comparison then
holds all ratios between the two, so it decides only what is so for any longer load.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from perflab.recordings import Contrast, Run
from perflab.recordings.responses import growth_column, requests_column
from perflab.statistics.block_ends import Ends
from perflab.statistics.in_words import number

# Of the memory: what grows by more over a load still grows, and by less does not.
STILL_GROWS, NO_GROWTH = 0.05, 0.01
KB = 1e3
# The code of the remark that memory grows while nobody asks.
GROWS_IDLE = "memory.grows_idle"


class Side(NamedTuple):
    """One side by block: memory, its growth a request, and the requests before it was read."""

    held: pd.Series[float]
    growth: pd.Series[float]
    requests: pd.Series[float]

    @property
    def share(self) -> pd.Series[float]:
        """Return the growth over a load, as a share of the memory."""
        return self.growth * self.requests / self.held

    def after(self, requests: pd.Series[float]) -> pd.Series[float]:
        """Return the memory after fewer requests; a hundredth of it at least."""
        less = self.growth.clip(lower=0) * (self.requests - requests)
        return (self.held - less).clip(lower=self.held / 100)


def sides(run: Run, contrast: Contrast, trials: pd.DataFrame) -> tuple[Side, Side] | None:
    """Return numerator and denominator of a contrast; None where no growth was measured."""
    columns = [contrast.response, growth_column(contrast.response)]
    columns.append(requests_column(contrast.response))
    if contrast.scale != "ratio" or not set(columns) <= set(trials.columns):
        return None
    found = []
    for levels in (contrast.numerator, contrast.denominator):
        of_side = trials[trials["treatment"].isin(run.record.selected(levels))]
        by_block = of_side.set_index("block")[columns].astype(float)
        held, growth, requests = (by_block[name] for name in columns)
        found.append(Side(held, growth.fillna(0.0), requests))
    return found[0], found[1]


def after_equal_requests(
    run: Run, contrast: Contrast, trials: pd.DataFrame, ends: Ends
) -> tuple[Ends, str]:
    """Return the log ratios of memory by block, and in words how it grows ("": it does not).

    ``ends`` are the log ratios of the values as they were read, which are returned for any other
    response.
    """
    both = sides(run, contrast, trials)
    if both is None:
        return ends, ""
    new, old = both
    fewer = pd.concat([new.requests, old.requests], axis=1).min(axis=1)
    equal = (new.after(fewer) / old.after(fewer)).map(math.log).reindex(ends.low.index)
    equal_ends = Ends(equal, equal)
    if any(remark.code == GROWS_IDLE for remark in run.record.warnings):
        # By the clock, not by requests: the values as they were read are as good an end.
        equal_ends = equal_ends.around(ends)
    if not any(side.share.median() > STILL_GROWS for side in both):
        return ends.around(equal_ends), ""
    low, high = (ratio.reindex(equal.index).where(equal.notna()) for ratio in _growths(new, old))
    texts = [f"{number(float(side.growth.median()) / KB)} KB" for side in (old, new)]
    return equal_ends.around(Ends(low, high)), _words(texts, contrast)


def _growths(new: Side, old: Side) -> tuple[pd.Series[float], pd.Series[float]]:
    """Return the ends of the log ratio of growths by block; one end is open if one side is flat.

    A block's growth counts as what can be told from none, at least.
    """
    of_new, of_old = (
        side.growth.clip(lower=NO_GROWTH * side.held / side.requests) for side in (new, old)
    )
    ratio = (of_new / of_old).map(math.log)
    open_end = pd.Series(math.inf, index=ratio.index)
    low = -open_end if new.share.median() <= NO_GROWTH else ratio
    return low, open_end if old.share.median() <= NO_GROWTH else ratio


def _words(texts: list[str], contrast: Contrast) -> str:
    old, new = ("/".join(side.values()) for side in (contrast.denominator, contrast.numerator))
    return (
        f"still grows, by {texts[0]} a request ({old}) and {texts[1]} ({new}), so its ratio "
        "depends on the length of the load: the interval reaches from the ratio after equally many "
        "requests to that of the growths"
    )
