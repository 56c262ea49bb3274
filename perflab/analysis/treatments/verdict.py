"""The one rule that turns a measured effect and a published one into a verdict.

The published studies give no intervals; 10% is granted to their numbers instead (the margin).
With d the published direction, [L, H] the measured 95% interval of the log ratio times d, E its
estimate, P the size of the published log ratio and M = log 1.1:

==============================  ======================================================
published                       verdict
==============================  ======================================================
(marked so by the experiment)   not testable here
anything, fewer than 3 blocks   inconclusive
nothing                         nothing published
a ratio within 10% of 1         as "no effect" below, for the margin holds both directions; but
                                where one is claimed as well and [L, H] is not in +- M:
                                reproduced in direction if L > 0
a ratio, H < 0                  not reproduced (the effect goes the other way)
a ratio, L <= 0, H < P/2        not reproduced (absent, or less than half as large)
a ratio, L <= 0, H >= P/2       inconclusive
a ratio, L > 0                  reproduced if [L, H] meets P +- M and P/2 <= E <= 2P,
                                else reproduced in direction
"no effect"                     reproduced if [L, H] lies in +- M; not reproduced if
                                it lies wholly outside; else inconclusive
a direction only                reproduced in direction if L > 0, not reproduced if H < 0,
                                else inconclusive
==============================  ======================================================

A published difference (points of CPU, say) is judged as a ratio is, with differences in place of
log ratios and M = P/10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from perflab.analysis.methods.comparison import Effect
from perflab.numerals import counted
from perflab.recordings import Contrast

SHARE = 0.1
MARGIN = math.log1p(SHARE)
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
        return Verdict(
            Outcome.INCONCLUSIVE,
            f"{counted(n, 'usable block')}; a verdict needs at least {SMALLEST_N}",
        )
    published = contrast.published_ratio is not None or contrast.published_difference is not None
    if not published and contrast.published_direction is None:
        return Verdict(Outcome.UNPUBLISHED, "there is nothing to compare with")
    if contrast.published_direction == "none" or no_difference(contrast.published_ratio):
        return _judge_absence(effect, contrast)
    low, high = _ends(effect, contrast)
    if not published:
        return _judge_direction(low, high)
    estimate = _sign(contrast) * _on_scale(effect.estimate, contrast)
    if contrast.published_ratio is not None:
        return _judge_size(low, high, estimate, abs(math.log(contrast.published_ratio)), MARGIN)
    size = abs(contrast.published_difference or 0.0)
    return _judge_size(low, high, estimate, size, SHARE * size)


def no_difference(ratio: float | None) -> bool:
    """Say whether a published ratio lies so close to 1 that the margin takes it for no effect."""
    return ratio is not None and abs(math.log(ratio)) <= MARGIN + ROUNDING


def _goes_down(contrast: Contrast) -> bool:
    if contrast.published_ratio is not None:
        return contrast.published_ratio < 1
    if contrast.published_difference is not None:
        return contrast.published_difference < 0
    return contrast.published_direction == "smaller"


def _sign(contrast: Contrast) -> float:
    return -1.0 if _goes_down(contrast) else 1.0


def _on_scale(value: float, contrast: Contrast) -> float:
    return math.log(value) if contrast.scale == "ratio" else value


def _ends(effect: Effect, contrast: Contrast) -> tuple[float, float]:
    """Return L and H: the ends of the log ratio or difference in the published direction."""
    ends = sorted(_sign(contrast) * _on_scale(end, contrast) for end in (effect.low, effect.high))
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


def _judge_size(low: float, high: float, estimate: float, size: float, margin: float) -> Verdict:
    if high < 0:
        return Verdict(Outcome.NOT_REPRODUCED, "the effect goes the other way")
    if low <= 0:
        if high < size / 2:
            return Verdict(Outcome.NOT_REPRODUCED, "absent, or less than half the published size")
        return Verdict(Outcome.INCONCLUSIVE, "the interval includes no effect and a large one")
    meets = low <= size + margin and high >= size - margin
    if meets and size / 2 <= estimate <= 2 * size:
        return Verdict(Outcome.REPRODUCED, "direction and size agree")
    return Verdict(Outcome.IN_DIRECTION, "same direction, another size")
