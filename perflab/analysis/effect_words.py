"""Effects in words: ``+15% [11, 30]``, ``3.4x [2.9, 4]``, ``at least 12% less``.

In tables and figures a ratio is told as it is, ``1.15 [1.11, 1.30]``, by :func:`effect_text`.
"""

from __future__ import annotations

import math

from perflab.analysis.evaluation import Finding
from perflab.recordings import Response
from perflab.recordings.responses import is_share
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import (
    MISSING,
    at_least,
    at_most,
    missing,
    number,
    signed,
    to_safe_side,
)

ONLY_A_BOUND = "only a bound is known, without a value yet"
# From this ratio on an effect is told in times, below it in percent.
# An interval that reaches so far is told in times, too: a thousand percent says nothing.
IN_TIMES, ENDS_IN_TIMES = 2.0, 5.0
PERCENT = 100.0
NO_INTERVAL = " (no interval)"
LEAST_PERCENT = 0.001


def effect_text(finding: Finding) -> str:
    """Return an effect with its interval, or as the bound that it is: ``<= 0.21``.

    ``1.58 [1.49, 1.70]`` is a ratio, ``+0.268 cores [0.241, 0.290]`` a difference, and
    ``64.0% [60.1, 70.2]`` a share.
    """
    effect = finding.effect
    if effect is None:
        return MISSING
    if not effect.bound:
        return _interval_of(finding, effect)
    factor, unit = unit_of(finding)
    bound = at_most if effect.bound == "at most" else at_least
    text = with_unit(bound(factor * effect.limit), unit)
    return text + NO_INTERVAL * math.isnan(effect.confidence)


def _interval_of(finding: Finding, effect: Effect) -> str:
    factor, unit = unit_of(finding)
    value, low, high = (factor * end for end in (effect.estimate, effect.low, effect.high))
    return interval_words(value, low, high, finding.contrast.scale, unit)


def interval_words(value: float, low: float, high: float, scale: str, unit: str = "") -> str:
    """Return a value of a scale with its interval, in three digits."""
    if missing(value):
        return MISSING

    def told(one: float) -> str:
        # Shares of pairs by a model may be as small as nobody reads.
        return f"<{LEAST_PERCENT}" if unit == "%" and 0 < one < LEAST_PERCENT else number(one)

    text = with_unit(signed(value) if scale == "difference" else told(value), unit)
    return text + (f" [{told(low)}, {told(high)}]" if math.isfinite(low) else NO_INTERVAL)


def with_unit(text: str, unit: str) -> str:
    """Return a number with its unit: ``12.0 ms``, ``50%``."""
    return f"{text}{'' if unit == '%' else ' '}{unit}".rstrip()


def unit_of(finding: Finding) -> tuple[float, str]:
    """Return what effects are multiplied with where they are told, and their unit."""
    scale, response = finding.contrast.scale, finding.response
    if scale == "share" or (scale == "level" and is_share(response)):
        return PERCENT, "%"
    if scale == "difference":
        return unit_of_difference(response)
    return 1.0, response.unit if scale == "level" else ""


def unit_of_difference(response: Response) -> tuple[float, str]:
    """Return what differences of a response are multiplied with, and their unit."""
    return (PERCENT, "points") if is_share(response) else (1.0, response.unit)


def published_size(finding: Finding) -> str:
    """Return the published ratio, difference, level or share, with its unit; or nothing."""
    contrast, (factor, unit) = finding.contrast, unit_of(finding)
    is_ratio = contrast.scale == "ratio"
    size = contrast.published_ratio if is_ratio else contrast.published_difference
    return "" if size is None else with_unit(number(factor * size), unit)


def limit_words(finding: Finding) -> str:
    """Return where an effect lies by a claim with a limit: ``more than 50%``; or nothing."""
    contrast, (factor, unit) = finding.contrast, unit_of(finding)
    if contrast.limit is None:
        return ""
    word = "more" if contrast.published_direction == "greater" else "less"
    return f"{word} than {with_unit(f'{factor * contrast.limit:g}', unit)}"


def refused_words(finding: Finding) -> str:
    """Return the refused trials that may change the effect, and the effect with them; or nothing.

    The effect stands beside the one of the valid trials, which it may contradict.
    """
    refused = finding.refused
    if refused is None:
        return ""
    if refused.effect is None:
        return f"{refused.text}, without a value of this"
    but = f" ({refused.without} have none)" if refused.without else ""
    return f"{refused.text}; with their values{but} {effect_words(finding, refused.effect)}"


def effect_words(finding: Finding, effect: Effect) -> str:
    """Return an effect as answers tell it: a ratio as a change, all else with its unit.

    A ratio beside a limit is told as the limit is.
    """
    contrast = finding.contrast
    if contrast.scale == "ratio" and contrast.limit is None:
        return ratio_words(effect)
    if not effect.bound:
        return _interval_of(finding, effect)
    if not math.isfinite(effect.limit):
        return ONLY_A_BOUND
    factor, unit = unit_of(finding)
    limit = number(to_safe_side(factor * effect.limit, effect.bound))
    return with_unit(f"{effect.bound} {limit}", unit)


def ratio_words(effect: Effect) -> str:
    """Return a ratio as a change in percent with its interval, or in times if it is large."""
    if effect.bound:
        is_known = math.isfinite(effect.limit)
        return bound_words(effect.bound, effect.limit) if is_known else ONLY_A_BOUND
    if not math.isfinite(effect.low):
        return change(effect.estimate)
    if effect.estimate >= IN_TIMES or effect.high >= ENDS_IN_TIMES:
        return f"{number(effect.estimate)}x [{number(effect.low)}, {number(effect.high)}]"
    low, high = (percent(100 * (end - 1)) for end in (effect.low, effect.high))
    return f"{change(effect.estimate)} [{low}, {high}]"


def bound_words(bound: str, limit: float) -> str:
    """Return how far a ratio lies from 1 at least, or at most, rounded to the safe side."""
    if limit >= IN_TIMES:
        return f"{bound} {number(to_safe_side(limit, bound))}x"
    is_less, size = limit < 1, round(100 * abs(limit - 1), 6)
    is_least = (bound == "at most") == is_less
    digits = 10 ** (size < 9.95)
    size = (math.floor if is_least else math.ceil)(size * digits) / digits
    word = "less" if is_less else "more"
    return f"at {'least' if is_least else 'most'} {percent(size)}% {word}"


def change(ratio: float) -> str:
    """Return a ratio as a change: ``+15%``, ``-6.7%``, ``13.2x``."""
    return f"{number(ratio)}x" if ratio >= IN_TIMES else f"{percent(100 * (ratio - 1), '+')}%"


def percent(value: float, sign: str = "") -> str:
    """Return percent without decimals, below ten with one; -100 only where nothing is left."""
    decimals = int(abs(value) < 9.95)
    while float(text := f"{value:{sign}.{decimals}f}") == -PERCENT < value:
        decimals += 1
    return text
