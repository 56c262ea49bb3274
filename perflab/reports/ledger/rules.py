"""The rules of the study check, by name: pure functions from parts to a result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import add, mul

from perflab.reports.ledger.rows import Interval, Parts, Result, Word, exactly
from perflab.statistics.percentiles import needed_n

NOTHING, ONE = exactly(0.0), exactly(1.0)
# Between two rows that should be alike: from this share of an effect on it explains too much of it.
TOO_LARGE = 0.5
NEAR = 1.25
NEARLY_ALL = 0.9


def _fits(fits: bool, numbers: str) -> Result:
    return Result(Word.CONSISTENT if fits else Word.INCONSISTENT, numbers)


def _tells(tells: bool, numbers: str) -> Result:
    return Result(Word.CONSISTENT if tells else Word.CANNOT_TELL, numbers)


def _agrees(found: Interval, stated: Interval, what: str) -> Result:
    """Compare what follows from rows with what is stated."""
    return _fits(found.meets(stated), f"{what} {found}; stated {stated}")


def _sum(values: Iterable[Interval]) -> Interval:
    return reduce(add, values, NOTHING)


def _product(parts: Parts) -> Interval:
    return reduce(mul, parts.values("times"), ONE) / reduce(mul, parts.values("over"), ONE)


# ---- arithmetic: numbers of one study that follow from one another ------------------------------


def product(parts: Parts) -> Result:
    """Say whether the product of ``times`` by those of ``over`` is ``stated``.

    Requests by a rate are a time, one throughput by another is an effect.
    """
    return _agrees(_product(parts), parts.value("stated"), "computed")


def total(parts: Parts) -> Result:
    """Say whether the sum of ``plus`` without ``minus`` is ``stated``."""
    found = _sum(parts.values("plus")) - _sum(parts.values("minus"))
    return _agrees(found, parts.value("stated"), "computed")


def at_most(parts: Parts) -> Result:
    """Say whether the sum of ``plus``, or the product as in ``product``, fits below ``limit``.

    Several limits are added up. Rate times latency is at most the users, by Little's law (J. D. C.
    Little, Operations Research 9, 1961); calls times the least that one takes are at most the time.
    """
    found = _sum(parts.values("plus")) if parts.named("plus") else _product(parts)
    limit = _sum(parts.values("limit"))
    return _fits(found.low <= limit.high, f"computed {found}; at most {limit}")


def change(parts: Parts) -> Result:
    """Say whether ``new`` is by the ``stated`` share (or at a loss of ``lost``) from ``old``."""
    found = parts.value("new") / parts.value("old") - ONE
    if parts.named("lost"):
        return _agrees(NOTHING - found, parts.value("lost"), "lost")
    return _agrees(found, parts.value("stated"), "changed by")


def share(parts: Parts) -> Result:
    """Say whether ``part`` is the ``stated`` share of itself and the ``rest``."""
    part, rest = parts.value("part"), _sum(parts.values("rest"))
    # The part stands above and below the line: its ends must not be mixed.
    found = Interval(part.low / (part.low + rest.high), part.high / (part.high + rest.low))
    return _agrees(found, parts.value("stated"), "share")


def shares_fit(parts: Parts) -> Result:
    """Say whether ranges of shares can add up to a whole: every end must leave room for others.

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
    """Say whether ``first`` and ``second``, two accounts of one thing, are one number."""
    first, second = parts.value("first"), parts.value("second")
    ratio = second.middle / first.middle
    return _fits(first.meets(second), f"{first} and {second}, ratio {ratio:.3g}")


def ascending(parts: Parts) -> Result:
    """Say whether every ``step`` is at most the next.

    Percentiles ascend by definition; so does what a text says is less, and a limit is never passed.
    """
    steps = parts.values("step")
    falls = [
        f"{later} after {earlier}" for earlier, later in pairwise(steps) if later.high < earlier.low
    ]
    return _fits(not falls, "; ".join(falls) or ", ".join(map(str, steps)))


# ---- queues and clocks: what is in the system, and who waits for whom ---------------------------


def in_flight(parts: Parts) -> Result:
    """Say whether ``rate`` times ``time`` is the number of ``users``.

    In a closed loop without think time every user has a request in flight (Little's law). Several
    times are the ends of a range. Where the product is less, something else holds the users back,
    or the latency leaves a wait out.
    """
    times, users = parts.values("time"), parts.value("users")
    span = Interval(min(each.low for each in times), max(each.high for each in times))
    found = parts.value("rate") * span
    return _fits(found.meets(users), f"{found} in flight of {users} users")


def cost_share(parts: Parts) -> Result:
    """Say how much of what separates ``slow`` and ``fast`` rates the one ``between`` explains.

    Times per request (1 / rate) add up where rates do not. Consistent where the share, or what is
    ``stated`` of it, fits: with ``stated`` the number itself, else that it is nearly all (90%).
    """
    slow, between, fast = (parts.value(name).middle for name in ("slow", "between", "fast"))
    found = (1 / slow - 1 / between) / (1 / slow - 1 / fast)
    if parts.named("stated"):
        stated = parts.value("stated")
        return _fits(stated.meets(exactly(found)), f"{found:.1%}; stated {stated.middle:.0%}")
    return _fits(found >= NEARLY_ALL, f"it explains {found:.0%}; the rest is something else")


def omitted_pings(parts: Parts) -> Result:
    """Say whether a ``latency`` outlasts the ``interval`` of pings that wait for their answers.

    Then pings that were due meanwhile were never sent, and the worst seconds count once
    (coordinated omission: G. Tene, How NOT to Measure Latency, 2013): the percentile is too low.
    """
    latency, interval = parts.value("latency"), parts.value("interval")
    if latency.low <= interval.high:
        return _tells(True, f"{latency} s is within the interval of {interval} s")
    missed = int(latency.middle / interval.middle)
    return _tells(False, f"{latency} s with pings every {interval} s: {missed} never sent")


def instants(parts: Parts) -> Result:
    """Say at how many instants users act who ``join`` and act at fixed ``interval`` s.

    The k-th user acts at k join mod interval: as many instants as the denominator of join /
    interval in lowest terms, if there are as many users (modular arithmetic). ``users`` over that
    many is the burst; ``stated`` is the number of instants, or of users where ``users`` are given.
    """
    join, interval = (
        Fraction(str(round(parts.value(name).middle, 9))) for name in ("join", "interval")
    )
    places = (join / interval).denominator
    if not parts.named("users"):
        return _agrees(exactly(places), parts.value("stated"), "instants")
    users = parts.value("users").middle
    return _agrees(exactly(users / min(places, users)), parts.value("stated"), "users at once")


# ---- designs and samples: what rows, values, runs or retries can tell at all --------------------


def two_changes(parts: Parts) -> Result:
    """Say whether one ``change`` separates two rows; of several none can be told from the others.

    (Confounding: D. C. Montgomery, Design and Analysis of Experiments, ch. 1.)
    """
    changes = parts.texts("change")
    return _tells(len(changes) == 1, f"{len(changes)} at once: {'; '.join(changes)}")


def missing_row(parts: Parts) -> Result:
    """Say whether each ``wanted`` row, without which rows cannot be compared, was published."""
    missing = [part.row for part in parts.named("wanted") if part.value is None]
    words = f"not published: {'; '.join(missing)}" if missing else "all of them were published"
    return _tells(not missing, words)


def two_estimands(parts: Parts) -> Result:
    """Say whether what is compared is ``of`` one thing; a number says nothing of another one."""
    kinds = list(dict.fromkeys(parts.texts("of")))
    return _tells(len(kinds) == 1, " against ".join(kinds))


def circular(parts: Parts) -> Result:
    """Say that what was ``derived`` from a number cannot confirm that number."""
    rows = ", ".join(part.row for part in parts.named("derived"))
    return _tells(False, f"derived from it: {rows}")


def percentile_support(parts: Parts) -> Result:
    """Say whether ``n`` values (several: the ends of a range) bound ``percentile`` at all.

    See :func:`perflab.statistics.percentiles.smallest_n` (order statistics, 95%).
    """
    needed = needed_n(100 * parts.value("percentile").middle)
    counts = [value.middle for value in parts.values("n")]
    words = f"{needed} are needed, there are {' to '.join(f'{n:g}' for n in counts)}"
    return _tells(min(counts) >= needed, words)


def several(parts: Parts) -> Result:
    """Say whether there are two or more of ``n``, or two for each of ``over``.

    One run has no scatter, and an effect cannot be told from what differs from run to run
    (T. Kalibera, R. Jones, ISMM 2013); users who sent less than two requests were never steady.
    """
    found = parts.value("n").middle / (parts.value("over").middle if parts.named("over") else 1)
    return _tells(found >= 2, f"{found:.2g} each" if parts.named("over") else f"n = {found:g}")


def censored(parts: Parts) -> Result:
    """Say whether a ``time`` lies at the ``limit`` after which requests were given up.

    Such a time is a bound and not a measurement, and so is every ratio to it (D. R. Cox, D. Oakes,
    Analysis of Survival Data, 1984): the true one is larger by nobody knows how much.
    """
    time, limit = parts.value("time"), parts.value("limit")
    words = f"{time.middle:.4g} s, given up after {limit.middle:.4g} s"
    if time.high >= 0.95 * limit.low:
        return _tells(False, f"{words}: a bound, not a measurement")
    return _tells(True, words)


def as_large_as(parts: Parts) -> Result:
    """Say whether rows that should be alike differ as much as an effect (``over`` / ``under``).

    ``twin`` names two rows of one treatment, or two whose order cannot be. Where the log of their
    ratio is half that of the effect or more, the effect may be the same unknown.
    """
    first, second = (value.middle for value in parts.values("twin"))
    twins = abs(math.log(first / second))
    effect = abs(math.log(parts.value("over").middle / parts.value("under").middle))
    words = f"twins differ by {math.exp(twins):.3g}, the effect is {math.exp(effect):.3g}"
    return _tells(twins < TOO_LARGE * effect, words)


def near_limit(parts: Parts) -> Result:
    """Say whether a ``value`` may follow a ``limit``, of which each takes ``each``.

    Within a factor of 1.25 on both sides the limit explains it as well as what was changed.
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
