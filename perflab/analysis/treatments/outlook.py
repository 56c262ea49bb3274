"""How many more blocks a run with ``blocks = until_decided`` will want, if all is as it seems.

An interval narrows with the square root of its blocks. A contrast is decided when its interval has
left behind the values that lie between one decision and another: no effect, the ends of the zone of
a published size, the margin of what does not matter. So n blocks with an interval of half width w,
around an estimate that is d away from the nearest such value, want n (w / d)**2 blocks in all. It
is a guess for spending time by, and no statement about the run: which run gets the next block
changes nothing of what its intervals hold (they hold whenever it stops, see
:mod:`perflab.analysis.methods.repeated_looks`).
"""

from __future__ import annotations

import math

from perflab.analysis.methods.comparison import Effect
from perflab.analysis.treatments.decision import MARGIN
from perflab.analysis.treatments.open_claims import undecided_findings
from perflab.analysis.treatments.published import on_scale, published_sign, zone_of
from perflab.recordings import Contrast, Run, blocks_done


def blocks_left(run: Run) -> float:
    """Return the blocks that a run wants until everything is decided; 0: nothing is open.

    Infinite where they are more than the run may have, or where nobody can tell.

    Raises
    ------
    ValueError
        The number of its blocks is fixed.
    ResumeRefused
        It is too damaged to be gone on with.
    """
    rule = run.record.until_decided
    if rule is None:
        raise ValueError(f"run {run.run_id} has a fixed number of blocks")
    if rule.ended:
        return 0.0
    done = blocks_done(run)
    if done < rule.least_blocks:
        return float(rule.least_blocks - done)
    wanted = [blocks_wanted(found.effect, found.contrast) for found in undecided_findings(run)]
    left = max((each - done for each in wanted), default=0.0)
    return max(1.0, math.ceil(left)) if left <= rule.most_blocks - done else math.inf


def blocks_wanted(effect: Effect | None, contrast: Contrast) -> float:
    """Return how many blocks in all decide a contrast, if the effect is the one seen."""
    if effect is None or effect.bound or not math.isfinite(effect.low + effect.high):
        return math.inf
    low, centre, high = (
        on_scale(each, contrast) for each in (effect.low, effect.estimate, effect.high)
    )
    near = distance(centre, contrast)
    return effect.n * ((high - low) / 2 / near) ** 2 if near > 0 else math.inf


def distance(centre: float, contrast: Contrast) -> float:
    """Return how far an effect lies from where another decision would be taken, on its scale."""
    sign, zone = published_sign(contrast), zone_of(contrast)
    if zone is None:
        # Of what nothing was published either answer decides: a difference, or none that matters.
        same = 0.0 if sign else math.log1p(MARGIN) - abs(centre)
        return max(abs(centre), same)
    ends = min(abs(centre - zone.low), abs(centre - zone.high))
    outside = not zone.low <= centre <= zone.high
    return ends if outside or not sign else min(ends, abs(centre))
