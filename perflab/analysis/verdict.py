"""The one rule that turns a measured effect into a result, beside what a study published or alone.

It works on log ratios (for claims in a unit, on differences, levels or shares), with the 95%
interval and the 90% interval of the effect. The words are those of :mod:`perflab.analysis.results`.

**Held against a study.** The *direction* is shown if the 95% interval lies wholly on the published
side of no effect, and p, adjusted for the claims about its response, is 0.05 at most
(:mod:`~perflab.statistics.families`); it is *the other way* if the same holds on the other side.

Published studies give no intervals, so a published number has a *zone*. A ratio r has a third of
its log either way, at least a factor of 1.04 and at most one of 1.25: 1.13 agrees from 1.085 to
1.177, 1.6 from 1.37 to 1.87, 3.4 from 2.72 to 4.25. "No effect" has a factor of 1.1, a difference
and a published bound one of 1.25. The effect lies *within* the zone if its 90% interval does (two
one-sided 5% tests), and *outside* if its 95% interval lies wholly outside, *smaller* if that is on
the side of no effect; else that is open.

================  ============  ==========================================
direction         size          result
================  ============  ==========================================
shown             within        as published
shown             outside       less than published, or more
shown             open, none    in the direction published
the other way     any           the other way
not shown         any           no effect, if the 90% interval lies within
                                3% of none, or a tenth of a difference
not shown         smaller       less than published
not shown         else          not decided
(none claimed)    within        as published
(none claimed)    outside       less or more than published; where the 95%
                                interval lies on the other side of no effect
                                than the published number, the other way
(none claimed)    open          not decided
================  ============  ==========================================

A claim with a limit ("more than half", "below 1 ms") has the limit in the place of no effect; p is
then of an effect that is the limit, and "no effect" no result.

"No effect" claims no direction; nor does a ratio within 10% of 1 for which the study states none,
because a single run cannot show one.

**Two sides compared**, where nothing is published: a ratio is the *same* if its 90% interval lies
within 3% of 1; it is *better* or *worse* (more or less, where neither is better) if the 95%
interval excludes 1 and the adjusted p is 0.05 at most. A difference is better or worse by its
adjusted p.

Every interval within a wide one shows at least what the wide one shows, so measuring less never
improves a verdict. With fewer than 3 blocks nothing is decided. Claims that this machine cannot
test, or whose answer the load itself sets, are not judged.

An effect of which only a bound is known has an interval that is open on one side
(:mod:`~perflab.statistics.comparison`): it can show a direction and lie outside a zone. It can lie
within only that of a published bound of the same kind, which is open on that side, too.

Source of the two one-sided tests: D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987.
``docs/explanation/verdicts.md`` shows how often each result is given under which truth.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from perflab.analysis.decision import (
    MARGIN_OF_SHARES,
    WITHIN_MARGIN,
    Decision,
    is_within_margin,
)
from perflab.analysis.results import AgainstStudy, Compared, Verdict
from perflab.analysis.zones import Zone, is_published, on_scale, published_sign, zone_of
from perflab.recordings import Contrast, Response
from perflab.recordings.responses import FAILURES, split_request
from perflab.statistics.comparison import NO_SPREAD, USUAL_P, Effect
from perflab.statistics.families import Corrected
from perflab.statistics.in_words import counted
from perflab.statistics.mean_intervals import SMALLEST_N
from perflab.statistics.shares import BlocksOfShares

# A difference is none beside the published one if its interval lies within this share of that.
BESIDE_PUBLISHED = 0.1
NEVER = "0 in every block"


# How an effect lies to a zone.
Place = Literal["within", "below", "above", "open"]


def without_effect(contrast: Contrast, reason: str) -> Verdict:
    """Return the verdict where there is no effect to judge, for a reason."""
    nothing = AgainstStudy.NOT_MEASURED if is_published(contrast) else Compared.NOT_COMPARED
    return _never_judged(contrast) or Verdict(nothing, reason)


def _never_judged(contrast: Contrast) -> Verdict | None:
    """Return the verdict on a claim that no effect can answer here; None for others."""
    if contrast.not_testable:
        return Verdict(AgainstStudy.NOT_TESTABLE, contrast.not_testable)
    if not contrast.set_by_load:
        return None
    nothing = AgainstStudy.NOT_TESTABLE if is_published(contrast) else Compared.NOT_COMPARED
    return Verdict(nothing, contrast.set_by_load, "set by the load")


def judge(
    effect: Effect,
    contrast: Contrast,
    corrected: Corrected | None = None,
) -> Verdict:
    """Hold a measured effect against the published one, by the rule of this module.

    ``corrected`` is the p-value among the run's claims about its response; without it the claim is
    alone. If blocks were added until all was decided, the reason names the looks.
    """
    if (verdict := _untested(effect, contrast)) is not None:
        return verdict
    verdict = _judged(effect, contrast, corrected)
    if effect.looks is None:
        return verdict
    return replace(verdict, reason=f"{verdict.reason}; {effect.looks.text(effect.n)}")


def against_limit(effect: Effect, contrast: Contrast) -> Effect:
    """Return an effect with the p-value of one that is exactly the limit of the claim."""
    if effect.blocks is None or math.isnan(effect.p_value):
        return effect
    p_value = effect.blocks.p_value(on_scale(contrast.nothing, contrast))
    # Towards the open end of a bound the effect may be any.
    is_beyond = not effect.low <= contrast.nothing <= effect.high
    return replace(effect, p_value=p_value if is_beyond or not effect.bound else 1.0)


def _judged(effect: Effect, contrast: Contrast, corrected: Corrected | None) -> Verdict:
    if effect.blocks is not None and effect.blocks.has_no_spread:
        return Verdict(AgainstStudy.NOT_DECIDED, NO_SPREAD)
    sign, zone = published_sign(contrast), zone_of(contrast)
    way, why = _direction(effect, contrast, sign, corrected) if sign else (0, "")
    place = _place(effect, contrast, zone) if zone else None
    where = _where(effect, place, zone) if place and zone else ""
    reason = "; ".join(filter(None, [why, where]))
    if way < 0:
        return Verdict(AgainstStudy.OTHER_WAY, reason)
    if place == "within" and (way or not sign):
        return Verdict(AgainstStudy.AS_PUBLISHED, reason, is_shown=way > 0)
    if place in ("below", "above") and (way or not sign):
        return Verdict(_beside(effect, contrast, place), reason, is_shown=way > 0)
    if way:
        return Verdict(AgainstStudy.IN_DIRECTION, reason, is_shown=True)
    if sign and (within := _none_beside(effect, contrast)):
        return Verdict(AgainstStudy.NO_EFFECT, reason, within)
    if sign and place == ("below" if sign > 0 else "above"):
        return Verdict(AgainstStudy.LESS, reason)
    return Verdict(AgainstStudy.NOT_DECIDED, reason)


def compared(
    effect: Effect,
    contrast: Contrast,
    response: Response,
    decision: Decision | None,
    p_adjusted: float,
) -> Verdict:
    """Say how two sides are beside each other, where nothing is published.

    A ratio is judged by its ``decision``; a difference has no margin, so its adjusted p-value says
    whether it is shown. Shares of failures are the same within ``MARGIN_OF_SHARES``.
    """
    if (verdict := _untested(effect, contrast)) is not None:
        return verdict
    if decision is not None and decision.result is Compared.SAME:
        return Verdict(Compared.SAME, decision.text, WITHIN_MARGIN)
    if split_request(contrast.response)[0] == FAILURES and (within := _failed_alike(effect)):
        return Verdict(Compared.SAME, within, within)
    if decision is None and not p_adjusted <= USUAL_P:
        return Verdict(Compared.NOT_DECIDED, "")
    if decision is not None and decision.result is Compared.NOT_DECIDED:
        return Verdict(Compared.NOT_DECIDED, decision.missing or decision.text)
    is_more = (effect.limit if effect.bound else effect.estimate) > contrast.nothing
    if response.better == "neither":
        return Verdict(Compared.MORE if is_more else Compared.LESS, "")
    is_worse = is_more == (response.better == "less")
    return Verdict(Compared.WORSE if is_worse else Compared.BETTER, "")


def _failed_alike(effect: Effect) -> str:
    """Return in words that the shares of two sides do not differ; empty if they may.

    Two one-sided tests hold them within the margin; that nothing failed is a fact.
    """
    if isinstance(effect.blocks, BlocksOfShares) and effect.blocks.none_failed:
        return "no failures on either side"
    least, most = effect.narrow_low, effect.narrow_high
    is_within = least > -MARGIN_OF_SHARES and most < MARGIN_OF_SHARES
    return f"within {100 * MARGIN_OF_SHARES:g} points" if is_within else ""


def _untested(effect: Effect, contrast: Contrast) -> Verdict | None:
    """Return the verdict on an effect that decides nothing, whatever its size; else None."""
    if effect.n >= SMALLEST_N or contrast.not_testable or contrast.set_by_load:
        return _never_judged(contrast)
    usable = effect.n_words if effect.of_blocks else counted(effect.n, "usable block")
    undecided = AgainstStudy.NOT_DECIDED if is_published(contrast) else Compared.NOT_DECIDED
    return Verdict(undecided, f"{usable}; a verdict needs at least {SMALLEST_N}")


def _direction(
    effect: Effect, contrast: Contrast, sign: int, corrected: Corrected | None
) -> tuple[int, str]:
    """Return 1 where the direction is shown, -1 where the other is, 0 for neither; and why."""
    nothing = on_scale(contrast.nothing, contrast)
    ends = (on_scale(end, contrast) - nothing for end in (effect.low, effect.high))
    low, high = sorted(sign * end for end in ends)
    words = f"{contrast.nothing:g} ({'no effect' if contrast.limit is None else 'the limit'})"
    if not (low > 0 or high < 0):
        return 0, f"the interval includes {words}"
    if corrected is not None and not corrected.holds:
        return 0, f"the interval excludes {words}, but {corrected.text()}"
    return (1 if low > 0 else -1), f"the interval excludes {words}"


def _place(effect: Effect, contrast: Contrast, zone: Zone) -> Place:
    low, high = (on_scale(end, contrast) for end in (effect.low, effect.high))
    if high < zone.low:
        return "below"
    if low > zone.high:
        return "above"
    inner = [on_scale(end, contrast) for end in (effect.narrow_low, effect.narrow_high)]
    # Without a 90% interval the ends are NaN, and nothing lies within. The interval of a bound is
    # open, so it lies within the zone of a published bound on its side alone.
    return "within" if zone.low <= inner[0] and inner[1] <= zone.high else "open"


def _where(effect: Effect, place: Place, zone: Zone) -> str:
    if place == "within":
        return f"the 90% interval lies within {zone.text()}"
    if place == "open" and effect.bound:
        return f"only a bound is known, and it does not exclude {zone.text()}"
    if place == "open":
        return f"the interval is not clearly within or outside {zone.text()}"
    return f"the interval lies outside {zone.text()}"


def _beside(effect: Effect, contrast: Contrast, place: Place) -> AgainstStudy:
    """Return how an effect outside a zone is beside what was published.

    Beside a published "no effect" every effect is more.
    """
    published = contrast.published_difference
    if contrast.published_ratio is not None:
        published = contrast.published_ratio
    if contrast.published_direction == "none" or published is None:
        return AgainstStudy.MORE
    nothing = contrast.nothing
    if published == nothing:
        return AgainstStudy.MORE
    if (place == "above") == (published > nothing):
        return AgainstStudy.MORE
    is_beyond = effect.high < nothing if published > nothing else effect.low > nothing
    return AgainstStudy.OTHER_WAY if is_beyond else AgainstStudy.LESS


def _none_beside(effect: Effect, contrast: Contrast) -> str:
    """Return within which margin an effect is none; empty where it may matter."""
    if effect.bound or contrast.published_bound or contrast.limit is not None:
        return ""
    if contrast.scale == "ratio":
        return WITHIN_MARGIN if is_within_margin(effect) else ""
    farthest = max(abs(effect.low), abs(effect.high))
    # Counts, as a rule, of six blocks or more: no margin is too narrow for that.
    if farthest == 0:
        return NEVER
    is_none = farthest < abs(contrast.published_difference or 0.0) * BESIDE_PUBLISHED
    return f"within {BESIDE_PUBLISHED:.0%} of the published one" if is_none else ""
