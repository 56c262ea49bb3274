"""What was published of a contrast, as a verdict needs it: a direction, and a zone of sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from perflab.numerals import number
from perflab.recordings import Contrast, Scale

SIZE_FACTOR = 1.25
NO_EFFECT_FACTOR = 1.1
# Logs of a ratio and of its inverse differ by this much at most.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Zone:
    """Where an effect agrees with a published size: log ratios, or differences in their unit."""

    low: float
    high: float
    scale: Scale

    def text(self) -> str:
        """Return its ends as ratios or differences: ``1.28 to 2.00``, or ``at most 0.26``."""
        low, high = (
            math.exp(end) if self.scale == "ratio" else end for end in (self.low, self.high)
        )
        if math.isinf(self.low):
            return f"at most {number(high)}"
        return (
            f"at least {number(low)}"
            if math.isinf(self.high)
            else f"{number(low)} to {number(high)}"
        )


def no_difference(ratio: float | None) -> bool:
    """Say whether a published ratio lies so close to 1 that a single run tells no direction."""
    return ratio is not None and abs(math.log(ratio)) <= math.log(NO_EFFECT_FACTOR) + ROUNDING


def published_sign(contrast: Contrast) -> int:
    """Return to which side of no effect the published one lies: 1, -1, or 0 where none is told."""
    if contrast.published_direction is not None:
        return {"greater": 1, "smaller": -1, "none": 0}[contrast.published_direction]
    if contrast.published_difference is not None:
        return 1 if contrast.published_difference > 0 else -1
    if contrast.published_ratio is None or no_difference(contrast.published_ratio):
        return 0
    return 1 if contrast.published_ratio > 1 else -1


def zone_of(contrast: Contrast) -> Zone | None:
    """Return where an effect agrees with the published size; None where no size was published.

    Where the published size is a bound, the zone is open on one side.
    """
    zone = _closed_zone(contrast)
    if zone is None or not contrast.published_bound:
        return zone
    if contrast.published_bound == "at most":
        return replace(zone, low=-math.inf)
    return replace(zone, high=math.inf)


def _closed_zone(contrast: Contrast) -> Zone | None:
    ratio = 1.0 if contrast.published_direction == "none" else contrast.published_ratio
    if ratio is not None:
        factor = NO_EFFECT_FACTOR if no_difference(ratio) else SIZE_FACTOR
        middle, margin = math.log(ratio), math.log(factor)
        return Zone(middle - margin, middle + margin, "ratio")
    if contrast.published_difference is None:
        return None
    size = contrast.published_difference
    low, high = sorted((size / SIZE_FACTOR, size * SIZE_FACTOR))
    return Zone(low, high, "difference")


def on_scale(value: float, contrast: Contrast) -> float:
    """Return an effect as the blocks hold it: the log of a ratio, or a difference as it is."""
    if contrast.scale == "difference":
        return value
    return -math.inf if value == 0 else math.log(value)
