"""Two treatments paired by block, as a run's contrast is."""

from __future__ import annotations

from typing import Any

import pandas as pd

from perflab.statistics.block_ends import Ends
from perflab.statistics.comparison import Effect, effect_of


def compare(numerator: pd.Series[Any], denominator: pd.Series[Any]) -> Effect:
    """Return the ratio of two treatments; both have a response per block."""
    above, below = (
        Ends(values, values).logs(side)
        for values, side in ((numerator, "numerator"), (denominator, "denominator"))
    )
    return effect_of(above.minus(below).low)
