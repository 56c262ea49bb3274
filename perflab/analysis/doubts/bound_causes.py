"""Why only a bound of an effect is known, and what would tell more than more blocks."""

from __future__ import annotations

import pandas as pd

from perflab.analysis.blocks import sides_of
from perflab.recordings import Contrast, Run
from perflab.recordings.responses import at_least_column

TIME_OUT = "a longer time-out would tell more than more blocks"
PAUSES = (
    "requests waited while their service was paused: longer slices (slice_ms), or whole trials "
    "(design = trials), would tell more than more blocks"
)
UNKNOWN = "more blocks would not tell more"


def way_out_of_bound(run: Run, contrast: Contrast, trials: pd.DataFrame) -> str:
    """Return what would tell more of a response of which some trials have only a bound.

    A trial has a bound of a time because requests were cut off, which it counts, or because pauses
    of its service could have moved the time.
    """
    sides = [run.record.selected(side) for side in sides_of(contrast)[:2]]
    of_sides = trials[trials["treatment"].isin([name for names in sides for name in names])]
    bounds = of_sides.get(at_least_column(contrast.response))
    if bounds is None or not contrast.response.endswith("_ms") or not bounds.notna().any():
        return UNKNOWN
    cut = of_sides.get("censored", pd.Series(0, index=of_sides.index))
    return TIME_OUT if (cut[bounds.notna()] > 0).any() else PAUSES
