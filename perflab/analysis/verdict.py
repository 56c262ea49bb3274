"""The one rule that turns a measured effect and a published one into a verdict.

The published studies give no intervals; 10% is granted to their numbers instead (the margin).
With d the published direction, [L, H] the measured 95% interval of the log ratio times d, E its
estimate and P the size of the published log ratio:

==============================  ======================================================
published                       verdict
==============================  ======================================================
(marked so by the experiment)   not testable here
anything, fewer than 3 blocks   inconclusive
nothing                         nothing published
a ratio within 10% of 1         as "no effect" below, for the margin holds both directions; but
                                where one is claimed as well and [L, H] is not in +- log 1.1:
                                reproduced in direction if L > 0
a ratio, H < 0                  not reproduced (the effect goes the other way)
a ratio, L <= 0, H < P/2        not reproduced (absent, or less than half as large)
a ratio, L <= 0, H >= P/2       inconclusive
a ratio, L > 0                  reproduced if [L, H] meets P +- log 1.1 and P/2 <= E <= 2P,
                                else reproduced in direction
"no effect"                     reproduced if [L, H] lies in +- log 1.1; not reproduced if
                                it lies wholly outside; else inconclusive
a direction only                reproduced in direction if L > 0, not reproduced if H < 0,
                                else inconclusive
==============================  ======================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from perflab.analysis.comparison import Effect
from perflab.recordings import Contrast

MARGIN = math.log(1.1)
# Logs of a ratio and of its inverse differ by this much at most.
ROUNDING = 1e-12
SMALLEST_N = 3


class Outcome(StrEnum):
    """What may be said of a published effect."""

    REPRODUCED = "reproduced"
    IN_DIRECTION = "reproduced in direction"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable here"
    UNPUBLISHED = "nothing published"


@dataclass(frozen=True)
class Verdict:
    """An outcome and the reason for it; as text, the outcome."""

    outcome: Outcome
    reason: str

    def __str__(self) -> str:
        return self.outcome.value


def judge(effect: Effect | None, contrast: Contrast) -> Verdict:
    """Apply the rule of this module to a measured effect (None: there is none)."""
    if contrast.not_testable:
        return Verdict(Outcome.NOT_TESTABLE, contrast.not_testable)
    if effect is None or effect.n < SMALLEST_N:
        n = effect.n if effect else 0
        return Verdict(Outcome.INCONCLUSIVE, f"{n} usable blocks, at least {SMALLEST_N} needed")
    if contrast.published_ratio is None and contrast.published_direction is None:
        return Verdict(Outcome.UNPUBLISHED, "there is nothing to compare with")
    if contrast.published_direction == "none" or no_difference(contrast.published_ratio):
        return _judge_absence(effect, contrast)
    ends = _ends(effect, contrast)
    if contrast.published_ratio is None:
        return _judge_direction(*ends)
    size = abs(math.log(contrast.published_ratio))
    return _judge_size(ends[0], ends[1], _sign(contrast) * math.log(effect.ratio), size)


def no_difference(ratio: float | None) -> bool:
    """Say whether a published ratio lies so close to 1 that the margin takes it for no effect."""
    return ratio is not None and abs(math.log(ratio)) <= MARGIN + ROUNDING


def _goes_down(contrast: Contrast) -> bool:
    if contrast.published_ratio is not None:
        return contrast.published_ratio < 1
    return contrast.published_direction == "smaller"


def _sign(contrast: Contrast) -> float:
    return -1.0 if _goes_down(contrast) else 1.0


def _ends(effect: Effect, contrast: Contrast) -> tuple[float, float]:
    """Return L and H: the ends of the log ratio in the published direction."""
    ends = sorted(_sign(contrast) * math.log(end) for end in (effect.low, effect.high))
    return ends[0], ends[1]


def _judge_absence(effect: Effect, contrast: Contrast) -> Verdict:
    low, high = math.log(effect.low), math.log(effect.high)
    if low >= -MARGIN and high <= MARGIN:
        return Verdict(Outcome.REPRODUCED, "any difference is within 10%")
    if contrast.published_direction in ("greater", "smaller") and _ends(effect, contrast)[0] > 0:
        return Verdict(Outcome.IN_DIRECTION, "same direction; the size may be another")
    if low > MARGIN or high < -MARGIN:
        return Verdict(Outcome.NOT_REPRODUCED, "there is an effect larger than 10%")
    return Verdict(Outcome.INCONCLUSIVE, "the interval does not decide whether it is within 10%")


def _judge_direction(low: float, high: float) -> Verdict:
    if low > 0:
        return Verdict(Outcome.IN_DIRECTION, "the interval excludes no effect")
    if high < 0:
        return Verdict(Outcome.NOT_REPRODUCED, "the effect goes the other way")
    return Verdict(Outcome.INCONCLUSIVE, "the interval includes no effect")


def _judge_size(low: float, high: float, estimate: float, size: float) -> Verdict:
    if high < 0:
        return Verdict(Outcome.NOT_REPRODUCED, "the effect goes the other way")
    if low <= 0:
        if high < size / 2:
            return Verdict(Outcome.NOT_REPRODUCED, "absent, or less than half the published size")
        return Verdict(Outcome.INCONCLUSIVE, "the interval includes no effect and a large one")
    meets = low <= size + MARGIN and high >= size - MARGIN
    if meets and size / 2 <= estimate <= 2 * size:
        return Verdict(Outcome.REPRODUCED, "direction and size agree")
    return Verdict(Outcome.IN_DIRECTION, "same direction, another size")
