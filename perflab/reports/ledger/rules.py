"""The rules of the study check, by name: pure functions from parts to a result.

First stand rules of arithmetic, then those of queues and clocks, then those of designs and samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import add, mul

from perflab.reports.ledger.rows import Interval, Parts, Result, Word, exactly
from perflab.statistics.quantiles import needed_n

NOTHING, ONE = exactly(0.0), exactly(1.0)
# From this share of an effect on, a difference between equal rows explains too much of it.
TOO_LARGE = 0.5
NEAR = 1.25
NEARLY_ALL = 0.9


def _fits(fits: bool, numbers: str) -> Result:
    return Result(Word.CONSISTENT if fits else Word.INCONSISTENT, numbers)


def _tells(tells: bool, numbers: str) -> Result:
    return Result(Word.CONSISTENT if tells else Word.CANNOT_TELL, numbers)


def _agrees(computed: Interval, stated: Interval, verb: str) -> Result:
    """Compare a computed value with the stated one."""
    return _fits(computed.meets(stated), f"{verb} {computed}; stated {stated}")


def _sum(values: Iterable[Interval]) -> Interval:
    return reduce(add, values, NOTHING)


def _product(parts: Parts) -> Interval:
    return reduce(mul, parts.values("times"), ONE) / reduce(mul, parts.values("over"), ONE)


def product(parts: Parts) -> Result:
    """Say whether the product of ``times``, divided by that of ``over``, is ``stated``.

    For example, requests divided by a rate are a time; a throughput by another is an effect.
    """
    return _agrees(_product(parts), parts.value("stated"), "computed")


def total(parts: Parts) -> Result:
    """Say whether the sum of ``plus`` minus that of ``minus`` is ``stated``."""
    computed = _sum(parts.values("plus")) - _sum(parts.values("minus"))
    return _agrees(computed, parts.value("stated"), "computed")


def at_most(parts: Parts) -> Result:
    """Say whether the sum of ``plus``, or the product as in ``product``, is at most ``limit``.

    Several limits are added up. Rate times latency is at most the users, by Little's law (J. D. C.
    Little, Operations Research 9, 1961); calls times the least that one takes are at most the time.
    """
    computed = _sum(parts.values("plus")) if parts.named("plus") else _product(parts)
    limit = _sum(parts.values("limit"))
    return _fits(computed.low <= limit.high, f"computed {computed}; at most {limit}")


def change(parts: Parts) -> Result:
    """Say whether ``new`` differs from ``old`` by the ``stated`` share, or is less by ``lost``."""
    computed = parts.value("new") / parts.value("old") - ONE
    if parts.named("lost"):
        return _agrees(NOTHING - computed, parts.value("lost"), "lost")
    return _agrees(computed, parts.value("stated"), "changed by")


def share(parts: Parts) -> Result:
    """Say whether ``part`` is the ``stated`` share of the sum of ``part`` and ``rest``."""
    part, rest = parts.value("part"), _sum(parts.values("rest"))
    # The part is in numerator and denominator: both need the same end of it.
    computed = Interval(part.low / (part.low + rest.high), part.high / (part.high + rest.low))
    return _agrees(computed, parts.value("stated"), "share")


def shares_fit(parts: Parts) -> Result:
    """Say whether ranges of shares can add up to a whole: every end must leave room for the others.

    ``low`` and ``high`` are the ends, in the same order. A stated end that no choice of the other
    shares completes cannot have been computed from one request.
    """
    lows = [value.middle for value in parts.values("low")]
    highs = [value.middle for value in parts.values("high")]
    words = []
    for low, high in zip(lows, highs, strict=True):
        least, most = 1 - (sum(highs) - high), 1 - (sum(lows) - low)
        if high > most + 1e-9 or low < least - 1e-9:
            words.append(f"{low:.0%} to {high:.0%} stated, {least:.0%} to {most:.0%} possible")
    return _fits(not words, "; ".join(words) or "every end leaves room for the others")


def same(parts: Parts) -> Result:
    """Say whether ``first`` and ``second``, which state the same quantity, are one number."""
    first, second = parts.value("first"), parts.value("second")
    ratio = second.middle / first.middle
    return _fits(first.meets(second), f"{first} and {second}, ratio {ratio:.3g}")


def ascending(parts: Parts) -> Result:
    """Say whether every ``step`` is at most the next.

    Percentiles ascend by definition. So do a value and its limit, or values that a text orders.
    """
    steps = parts.values("step")
    falls = [
        f"{later} after {earlier}" for earlier, later in pairwise(steps) if later.high < earlier.low
    ]
    return _fits(not falls, "; ".join(falls) or ", ".join(map(str, steps)))


def in_flight(parts: Parts) -> Result:
    """Say whether ``rate`` times ``time`` is the number of ``users``.

    In a closed loop without think time every user has a request in flight (Little's law). Several
    times are the ends of a range. A smaller product means that something else holds the users
    back, or that the latency leaves out a wait.
    """
    times, users = parts.values("time"), parts.value("users")
    span = Interval(min(time.low for time in times), max(time.high for time in times))
    computed = parts.value("rate") * span
    return _fits(computed.meets(users), f"{computed} in flight of {users} users")


def cost_share(parts: Parts) -> Result:
    """Say which share of the step from the ``slow`` to the ``fast`` rate ``between`` explains.

    Times per request (1 / rate) add up, rates do not. With ``stated`` the share must be that
    number, otherwise nearly all (90%).
    """
    slow, between, fast = (parts.value(name).middle for name in ("slow", "between", "fast"))
    computed = (1 / slow - 1 / between) / (1 / slow - 1 / fast)
    if parts.named("stated"):
        stated = parts.value("stated")
        return _fits(stated.meets(exactly(computed)), f"{computed:.1%}; stated {stated.middle:.0%}")
    return _fits(computed >= NEARLY_ALL, f"it explains {computed:.0%}; the rest is something else")


def omitted_pings(parts: Parts) -> Result:
    """Say whether a ``latency`` outlasts the ``interval`` of pings that wait for their answers.

    Then pings that were due meanwhile were never sent, and the worst seconds count once. The
    percentile is too low (coordinated omission: G. Tene, How NOT to Measure Latency, 2013).
    """
    latency, interval = parts.value("latency"), parts.value("interval")
    if latency.low <= interval.high:
        return _tells(True, f"{latency} s is within the interval of {interval} s")
    missed = int(latency.middle / interval.middle)
    return _tells(False, f"{latency} s with pings every {interval} s: {missed} never sent")


def instants(parts: Parts) -> Result:
    """Say at how many instants users act who ``join`` one by one and act every ``interval``, in s.

    The k-th user acts at k join mod interval. With enough users there are as many instants as the
    denominator of join / interval in lowest terms (modular arithmetic). ``stated`` is the number of
    instants, or with ``users`` the number of users that act at one instant.
    """
    join, interval = (
        Fraction(str(round(parts.value(name).middle, 9))) for name in ("join", "interval")
    )
    places = (join / interval).denominator
    if not parts.named("users"):
        return _agrees(exactly(places), parts.value("stated"), "instants")
    users = parts.value("users").middle
    return _agrees(exactly(users / min(places, users)), parts.value("stated"), "users at once")


def two_changes(parts: Parts) -> Result:
    """Say whether a single ``change`` separates two rows; several cannot be told apart.

    (Confounding: D. C. Montgomery, Design and Analysis of Experiments, ch. 1.)
    """
    changes = parts.texts("change")
    return _tells(len(changes) == 1, f"{len(changes)} at once: {'; '.join(changes)}")


def missing_row(parts: Parts) -> Result:
    """Say whether each ``wanted`` row was published; without them nothing can be compared."""
    missing = [part.row for part in parts.named("wanted") if part.value is None]
    words = f"not published: {'; '.join(missing)}" if missing else "all of them were published"
    return _tells(not missing, words)


def two_estimands(parts: Parts) -> Result:
    """Say whether all compared numbers are ``of`` one estimand."""
    kinds = list(dict.fromkeys(parts.texts("of")))
    return _tells(len(kinds) == 1, " against ".join(kinds))


def circular(parts: Parts) -> Result:
    """Say that rows ``derived`` from a number cannot confirm that number."""
    rows = ", ".join(part.row for part in parts.named("derived"))
    return _tells(False, f"derived from it: {rows}")


def percentile_support(parts: Parts) -> Result:
    """Say whether ``n`` values (several: the ends of a range) are enough for ``percentile``.

    See :func:`perflab.statistics.quantiles.smallest_n` (order statistics, 95%).
    """
    needed = needed_n(100 * parts.value("percentile").middle)
    counts = [value.middle for value in parts.values("n")]
    words = f"{needed} are needed, there are {' to '.join(f'{n:g}' for n in counts)}"
    return _tells(min(counts) >= needed, words)


def several(parts: Parts) -> Result:
    """Say whether there are two or more of ``n``, or two for each of ``over``.

    A single run does not show how much runs differ, so an effect may be chance (T. Kalibera,
    R. Jones, ISMM 2013). Users who sent fewer than two requests were never in a steady state.
    """
    computed = parts.value("n").middle / (parts.value("over").middle if parts.named("over") else 1)
    return _tells(
        computed >= 2, f"{computed:.2g} each" if parts.named("over") else f"n = {computed:g}"
    )


def censored(parts: Parts) -> Result:
    """Say whether a ``time`` lies at the ``limit`` after which requests were given up.

    Such a time is only a lower bound, and so is every ratio to it (D. R. Cox, D. Oakes, Analysis of
    Survival Data, 1984).
    """
    time, limit = parts.value("time"), parts.value("limit")
    words = f"{time.middle:.4g} s, given up after {limit.middle:.4g} s"
    if time.high >= 0.95 * limit.low:
        return _tells(False, f"{words}: a bound, not a measurement")
    return _tells(True, words)


def as_large_as(parts: Parts) -> Result:
    """Say whether rows that should be alike differ as much as an effect (``over`` / ``under``).

    ``twin`` names two rows of one treatment, or two in an order that is impossible. Where the log
    of their ratio is at least half that of the effect, the effect may have the same unknown cause.
    """
    first, second = (value.middle for value in parts.values("twin"))
    twins = abs(math.log(first / second))
    effect = abs(math.log(parts.value("over").middle / parts.value("under").middle))
    words = f"twins differ by {math.exp(twins):.3g}, the effect is {math.exp(effect):.3g}"
    return _tells(twins < TOO_LARGE * effect, words)


def near_limit(parts: Parts) -> Result:
    """Say whether a ``value`` may be set by a ``limit`` of which every unit takes ``each``.

    Within a factor of 1.25 of the limit, the limit explains the value as well as the change does.
    """
    most = parts.value("limit").middle / parts.value("each").middle
    ratios = [value.middle / most for value in parts.values("value")]
    words = ", ".join(f"{ratio:.3g}" for ratio in ratios)
    near = any(1 / NEAR <= ratio <= NEAR for ratio in ratios)
    return _tells(not near, f"the limit allows {most:g}: {words} of it")


RULES: Mapping[str, Callable[[Parts], Result]] = {
    rule.__name__: rule
    for rule in (
        product, total, at_most, change, share, shares_fit, same, ascending,
        in_flight, cost_share, omitted_pings, instants,
        two_changes, missing_row, two_estimands, circular,
        percentile_support, several, censored, as_large_as, near_limit,
    )
}  # fmt: skip
