"""Effects in words: ``+15% [11, 30]``, ``3.4x [2.9, 4]``, ``at least 12% less``."""

from __future__ import annotations

import math

from perflab.analysis.evaluation import Finding
from perflab.statistics.comparison import Effect
from perflab.statistics.in_words import number, to_safe_side

ONLY_A_BOUND = "only a bound is known, without a value yet"
# From this ratio on an effect is told in times, below it in percent.
# An interval that reaches so far is told in times, too: a thousand percent says nothing.
IN_TIMES, ENDS_IN_TIMES = 2.0, 5.0


def refused_words(finding: Finding) -> str:
    """Return the refused trials of which one side has more, and the effect with them; or nothing.

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
    """Return an effect on the scale of a finding's contrast, with its interval and unit.

    A ratio beside a limit is told as the limit is.
    """
    scale = finding.contrast.scale
    if scale == "ratio" and finding.contrast.limit is None:
        return ratio_words(effect)
    has_unit = scale in ("difference", "level")
    words = difference_words(effect, finding.response.unit if has_unit else "")
    return words if scale == "difference" else words.removeprefix("+")


def limit_words(finding: Finding) -> str:
    """Return the limit of a claim: ``more than 0.5``; empty where it has none."""
    contrast = finding.contrast
    if contrast.limit is None:
        return ""
    word = "more" if contrast.published_direction == "greater" else "less"
    unit = finding.response.unit if contrast.scale in ("difference", "level") else ""
    return f"{word} than {contrast.limit:g} {unit}".rstrip()


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
    """Return percent without decimals, below ten with one."""
    return f"{value:{sign}.0f}" if abs(value) >= 9.95 else f"{value:{sign}.1f}"


def difference_words(effect: Effect, unit: str) -> str:
    """Return a difference with its interval and unit."""
    if effect.bound and not math.isfinite(effect.limit):
        return ONLY_A_BOUND
    if effect.bound:
        limit = number(to_safe_side(effect.limit, effect.bound))
        return f"{effect.bound} {limit} {unit}".rstrip()
    sign = "+" if effect.estimate > 0 else ""
    interval = f" [{number(effect.low)}, {number(effect.high)}]"
    known = interval if math.isfinite(effect.low) else ""
    return f"{sign}{number(effect.estimate)} {unit}".rstrip() + known
