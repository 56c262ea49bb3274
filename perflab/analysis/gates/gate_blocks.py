"""How many blocks a gate needs: with fewer, no threshold can be crossed, whatever is measured.

The signed-rank test of n blocks has no one-sided p-value below 1 / 2^n, and Holm's method asks for
0.05 / m of the first of m thresholds. From 3 to 5 blocks the t test is used, which has no smallest
p.
"""

from __future__ import annotations

from perflab.statistics.comparison import USUAL_P
from perflab.statistics.families import smallest_p
from perflab.statistics.interim_analysis import LooksTaken, UntilDecided
from perflab.statistics.interim_analysis import smallest_p as smallest_p_of_looks
from perflab.statistics.mean_intervals import SMALLEST_N, SMALLEST_SIGNED_RANK
from perflab.statistics.signed_rank import ROUNDING

# So many trials of a side may be lost.
SPARE_BLOCKS = 1


def can_fail(blocks: int, thresholds: int, looks: LooksTaken | None = None) -> bool:
    """Return whether so many blocks could cross one of so many thresholds."""
    if blocks < SMALLEST_N:
        return False
    if looks is None and blocks < SMALLEST_SIGNED_RANK:
        return True
    least = smallest_p(blocks) if looks is None else smallest_p_of_looks(looks) / 2
    return thresholds * least <= USUAL_P * (1 + ROUNDING)


def can_fail_at_last(rule: UntilDecided, thresholds: int) -> bool:
    """Return whether the last look of a run until all is decided could cross a threshold."""
    looks = LooksTaken(rule, tuple(look.blocks for look in rule.plan))
    return can_fail(rule.most_blocks, thresholds, looks)
