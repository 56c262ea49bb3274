"""What a study published of an effect: its side of no effect, and the zone of sizes that agree.

Published studies give no intervals, so a number has a zone
(:mod:`perflab.analysis.verdict` says how wide it is).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from perflab.recordings import Contrast
from perflab.statistics.comparison import Scale
from perflab.statistics.in_words import number
from perflab.statistics.mean_intervals import NO_DISTANCE

# The zone of a published ratio: a share of its log, between two factors.
SHARE_OF_RATIO, LEAST_FACTOR, SIZE_FACTOR = 1 / 3, 1.04, 1.25
NO_EFFECT_FACTOR = 1.1


@dataclass(frozen=True)
class Zone:
    """The effects that agree with a published size: log ratios, or differences in their unit."""

    low: float
    high: float
    scale: Scale

    def text(self) -> str:
        """Return the ends as ratios or differences: ``1.28 to 2.00``, or ``at most 0.26``."""
        low, high = (
            math.exp(end) if self.scale == "ratio" else end for end in (self.low, self.high)
        )
        if math.isinf(self.low):
            return f"at most {number(high)}"
        if math.isinf(self.high):
            return f"at least {number(low)}"
        return f"{number(low)} to {number(high)}"


def no_difference(ratio: float | None) -> bool:
    """Return whether a published ratio is so close to 1 that a single run shows no direction."""
    # The absolute logs of a ratio and of its inverse differ in the last bits.
    return ratio is not None and abs(math.log(ratio)) <= math.log(NO_EFFECT_FACTOR) + NO_DISTANCE


def published_sign(contrast: Contrast) -> int:
    """Return the published side of no effect, or of the limit: 1, -1, or 0 if none is."""
    if contrast.published_direction is not None:
        return {"greater": 1, "smaller": -1, "none": 0}[contrast.published_direction]
    if contrast.published_difference is not None:
        return 1 if contrast.published_difference > 0 else -1
    if contrast.published_ratio is None or no_difference(contrast.published_ratio):
        return 0
    return 1 if contrast.published_ratio > 1 else -1


def zone_of(contrast: Contrast) -> Zone | None:
    """Return the zone of the published size; None if no size was published."""
    zone = _closed_zone(contrast)
    if zone is None or not contrast.published_bound:
        return zone
    if contrast.published_bound == "at most":
        return replace(zone, low=-math.inf)
    return replace(zone, high=math.inf)


def _closed_zone(contrast: Contrast) -> Zone | None:
    ratio = 1.0 if contrast.published_direction == "none" else contrast.published_ratio
    if ratio is not None:
        middle, margin = math.log(ratio), _half_width(ratio, contrast)
        return Zone(middle - margin, middle + margin, "ratio")
    if contrast.published_difference is None:
        return None
    size = contrast.published_difference
    low, high = sorted((size / SIZE_FACTOR, size * SIZE_FACTOR))
    return Zone(low, high, "difference")


def _half_width(ratio: float, contrast: Contrast) -> float:
    if contrast.published_direction == "none":
        return math.log(NO_EFFECT_FACTOR)
    widest = math.log(SIZE_FACTOR)
    if contrast.published_bound:
        return widest
    return min(max(abs(math.log(ratio)) * SHARE_OF_RATIO, math.log(LEAST_FACTOR)), widest)


def on_scale(value: float, contrast: Contrast) -> float:
    """Return an effect on the scale of the blocks: the log of a ratio, or the difference."""
    if contrast.scale != "ratio":
        return value
    return -math.inf if value == 0 else math.log(value)


def is_published(contrast: Contrast) -> bool:
    """Return whether a study says anything with which an effect can be compared."""
    return bool(published_sign(contrast)) or zone_of(contrast) is not None


def claims_size(contrast: Contrast) -> bool:
    """Return whether a study says how large an effect is, and not only that there is one."""
    sizes = contrast.published_ratio, contrast.published_difference
    return contrast.published_direction != "none" and any(size is not None for size in sizes)
