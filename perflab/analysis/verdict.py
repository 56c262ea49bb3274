"""The one rule that turns a measured effect and a published one into a verdict.

The rule has two parts, fixed before any run. It works on log ratios (for claims in a unit, on
differences), with the 95% interval and the 90% interval of the effect.

**Direction.** *shown*: the 95% interval lies wholly on the published side of no effect, and p,
adjusted for the claims about its response, is 0.05 at most
(:mod:`~perflab.statistics.families`); *opposite*: the same on the other side; else *not shown*.

**Size.** Published studies give no intervals, so a published number has a zone: a factor of 1.25
either way. *agrees*: the 90% interval lies within the zone (two one-sided 5% tests);
*contradicted*: the 95% interval lies wholly outside the zone; else *undecided*. The zone of a ratio
within 10% of 1, and of "no effect", is a factor of 1.1 only: otherwise 1.24 would agree with a
published 1.02. "No effect" has no direction; nor has a ratio within 10% of 1 without a claimed
direction, because a single run cannot show one.

=======================  ============  =======================================
direction                size          verdict
=======================  ============  =======================================
shown                    agrees        reproduced
shown                    undecided     same direction; size not yet known
shown                    contradicted  same direction, but less than published
                                       (or more)
opposite                 any           not reproduced
not shown                contradicted  not reproduced
not shown                else          undecided
(none is claimed)        agrees        reproduced
(none is claimed)        contradicted  not reproduced
(none is claimed)        undecided     undecided
shown                    (none)        direction shown
opposite                 (none)        opposite direction
not shown                (none)        direction not shown
=======================  ============  =======================================

Every interval within a wide one shows at least what the wide one shows, so measuring less never
improves a verdict. With fewer than 3 blocks the verdict is undecided. Claims that this machine
cannot test, whose answer the load itself sets, or that nobody published are not judged.

An effect of which only a bound is known has an interval that is open on one side
(:mod:`~perflab.statistics.comparison`): it can show a direction and contradict a size. It can agree
only with a published bound of the same kind, whose zone is open on that side, too.

Source of the two one-sided tests: D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987.
``docs/explanation/verdicts.md`` shows how often each verdict is given under which truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from perflab.recordings import Contrast
from perflab.statistics.comparison import NO_SPREAD, SMALLEST_N, Effect, Scale
from perflab.statistics.families import Corrected
from perflab.statistics.in_words import counted, number

SIZE_FACTOR = 1.25
NO_EFFECT_FACTOR = 1.1
# The absolute logs of a ratio and of its inverse differ by at most this much.
ROUNDING = 1e-12


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
    return ratio is not None and abs(math.log(ratio)) <= math.log(NO_EFFECT_FACTOR) + ROUNDING


def published_sign(contrast: Contrast) -> int:
    """Return the side of no effect on which the published one lies: 1, -1, or 0 if unknown."""
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
        factor = NO_EFFECT_FACTOR if no_difference(ratio) else SIZE_FACTOR
        middle, margin = math.log(ratio), math.log(factor)
        return Zone(middle - margin, middle + margin, "ratio")
    if contrast.published_difference is None:
        return None
    size = contrast.published_difference
    low, high = sorted((size / SIZE_FACTOR, size * SIZE_FACTOR))
    return Zone(low, high, "difference")


def on_scale(value: float, contrast: Contrast) -> float:
    """Return an effect on the scale of the blocks: the log of a ratio, or the difference."""
    if contrast.scale == "difference":
        return value
    return -math.inf if value == 0 else math.log(value)


class Outcome(StrEnum):
    """The verdicts on a published effect."""

    REPRODUCED = "reproduced"
    SIZE_UNDECIDED = "same direction; size not yet known"
    LESS = "same direction, but less than published"
    MORE = "same direction, but more than published"
    DIRECTION_SHOWN = "direction shown"
    NOT_REPRODUCED = "not reproduced"
    OPPOSITE = "opposite direction"
    DIRECTION_NOT_SHOWN = "direction not shown"
    UNDECIDED = "undecided"
    SET_BY_LOAD = "set by the load"
    NOT_TESTABLE = "not testable here"
    UNPUBLISHED = "nothing published"


NEVER_JUDGED = (Outcome.SET_BY_LOAD, Outcome.NOT_TESTABLE, Outcome.UNPUBLISHED)


class Way(StrEnum):
    """The verdicts on a published direction."""

    SHOWN = "shown"
    OPPOSITE = "opposite"
    NOT_SHOWN = "not shown"


class Size(StrEnum):
    """The verdicts on a published size."""

    AGREES = "agrees"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Limit:
    """The value, with its words, that an interval must exclude to show a direction.

    Without words it is no effect: a ratio of 1, or a difference of 0.
    """

    value: float = 0.0
    words: str = ""


NO_EFFECT = Limit()


@dataclass(frozen=True)
class Verdict:
    """An outcome with its two parts (None: not claimed, or not judged) and the reason for it."""

    outcome: Outcome
    reason: str
    direction: Way | None = None
    size: Size | None = None

    def __str__(self) -> str:
        return self.outcome.value


def judge(
    effect: Effect | None,
    contrast: Contrast,
    corrected: Corrected | None = None,
    limit: Limit = NO_EFFECT,
) -> Verdict:
    """Apply the rule of this module to a measured effect (None: there is none).

    ``corrected`` is the p-value among the run's claims about its response; without it the claim is
    alone. Claims such as "more than half" have another ``limit`` than no effect. If blocks were
    added until all was decided, the reason names the looks.
    """
    verdict = _judged(effect, contrast, corrected, limit)
    if effect is None or effect.looks is None or verdict.outcome in NEVER_JUDGED:
        return verdict
    return replace(verdict, reason=f"{verdict.reason}; {effect.looks.text(effect.n)}")


def _judged(
    effect: Effect | None, contrast: Contrast, corrected: Corrected | None, limit: Limit
) -> Verdict:
    if contrast.not_testable:
        return Verdict(Outcome.NOT_TESTABLE, contrast.not_testable)
    if contrast.set_by_load:
        return Verdict(Outcome.SET_BY_LOAD, contrast.set_by_load)
    if effect is None or effect.n < SMALLEST_N:
        usable = effect.n_words if effect and effect.of_blocks else ""
        usable = usable or counted(effect.n if effect else 0, "usable block")
        return Verdict(Outcome.UNDECIDED, f"{usable}; a verdict needs at least {SMALLEST_N}")
    sign, zone = published_sign(contrast), zone_of(contrast)
    if not sign and zone is None:
        return Verdict(Outcome.UNPUBLISHED, "there is nothing to compare with")
    if effect.blocks is not None and effect.blocks.has_no_spread:
        return Verdict(Outcome.UNDECIDED, NO_SPREAD)
    way, why = _direction(effect, contrast, sign, corrected, limit) if sign else (None, "")
    size = _size(effect, contrast, zone) if zone else None
    if not (size and zone):
        return Verdict(_outcome(way, size), why, way, size)
    where = _where(size, zone)
    if effect.bound and size is Size.UNDECIDED:
        where = f"only a bound is known, and it does not exclude {zone.text()}"
    parts = [f"direction {way}: {why}" if way else "", f"size {size}: {where}"]
    outcome = _outcome(way, size)
    if outcome is Outcome.LESS and (on_scale(effect.low, contrast) > zone.high) == (sign > 0):
        outcome = Outcome.MORE
    return Verdict(outcome, "; ".join(filter(None, parts)), way, size)


def _direction(
    effect: Effect, contrast: Contrast, sign: int, corrected: Corrected | None, limit: Limit
) -> tuple[Way, str]:
    ends = (on_scale(end, contrast) - limit.value for end in (effect.low, effect.high))
    low, high = sorted(sign * end for end in ends)
    words = limit.words or f"{0 if contrast.scale == 'difference' else 1} (no effect)"
    if not (low > 0 or high < 0):
        return Way.NOT_SHOWN, f"the interval includes {words}"
    if corrected is not None and not corrected.holds:
        return Way.NOT_SHOWN, f"the interval excludes {words}, but {corrected.text()}"
    if high < 0:
        return Way.OPPOSITE, "the effect goes the other way"
    return Way.SHOWN, f"the interval excludes {words}"


def _size(effect: Effect, contrast: Contrast, zone: Zone) -> Size:
    low, high = (on_scale(end, contrast) for end in (effect.low, effect.high))
    if high < zone.low or low > zone.high:
        return Size.CONTRADICTED
    inner = [on_scale(end, contrast) for end in (effect.narrow_low, effect.narrow_high)]
    # Without a 90% interval the ends are NaN, and no size agrees. The interval of a bound is open,
    # so it lies within the zone of a published bound on its side alone.
    if zone.low <= inner[0] and inner[1] <= zone.high:
        return Size.AGREES
    return Size.UNDECIDED


def _where(size: Size, zone: Zone) -> str:
    where = {
        Size.AGREES: "the 90% interval lies within",
        Size.CONTRADICTED: "the interval lies outside",
        Size.UNDECIDED: "the interval is not clearly within or outside",
    }[size]
    return f"{where} {zone.text()}"


def _outcome(way: Way | None, size: Size | None) -> Outcome:
    if size is None:
        return {
            Way.SHOWN: Outcome.DIRECTION_SHOWN,
            Way.OPPOSITE: Outcome.OPPOSITE,
            Way.NOT_SHOWN: Outcome.DIRECTION_NOT_SHOWN,
        }[way or Way.NOT_SHOWN]
    if way is Way.OPPOSITE:
        return Outcome.NOT_REPRODUCED
    if way is Way.SHOWN:
        return {
            Size.AGREES: Outcome.REPRODUCED,
            Size.UNDECIDED: Outcome.SIZE_UNDECIDED,
            Size.CONTRADICTED: Outcome.LESS,
        }[size]
    if size is Size.CONTRADICTED:
        return Outcome.NOT_REPRODUCED
    return Outcome.REPRODUCED if way is None and size is Size.AGREES else Outcome.UNDECIDED
