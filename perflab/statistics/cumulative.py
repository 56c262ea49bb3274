"""What was used between two instants, of a time that is sampled as a running total."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd


def used_ns(samples: pd.DataFrame, column: str, begin_ns: int, end_ns: int) -> float:
    """Return the time (ns) used between two instants, by interpolating the running total.

    ``samples`` has ``t_ns``, ascending. NaN without two samples, or where no time lies between.
    """
    if len(samples) < 2 or end_ns <= begin_ns:
        return math.nan
    used = np.interp([begin_ns, end_ns], samples["t_ns"].to_numpy(), samples[column].to_numpy())
    return float(used[1] - used[0])
