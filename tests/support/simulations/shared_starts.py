"""How often equal treatments differ where blocks share starts of the services."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import effect_within
from perflab.statistics.two_samples import Rate


def false_alarms(
    random: np.random.Generator,
    blocks: int,
    fresh: int,
    start: float,
    trial: float,
    sets: int,
    as_blocks: bool = False,
    truth: float = 1.0,
) -> Rate:
    """Return how often two treatments are certainly different in runs of so many blocks.

    ``start`` is the standard deviation of the log response between starts of one service, ``trial``
    that between trials of a start, and ``fresh`` the number of blocks of a start. With
    ``as_blocks`` every block counts, and not every start.
    """
    starts, hits = pd.Series(np.arange(blocks) // fresh), 0
    for _ in range(sets):
        of_starts = start * random.standard_normal((2, blocks))[:, starts]
        one, other = of_starts + trial * random.standard_normal((2, blocks))
        logs = pd.Series(np.log(truth) + one - other)
        ends = Ends(logs, logs)
        effect = effect_within(ends if as_blocks else ends.mean_by(starts))
        hits += effect.low > 1 or effect.high < 1
    return Rate(hits, sets)
