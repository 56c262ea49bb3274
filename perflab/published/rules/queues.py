"""Rules of queues and clocks: what is in the system, for how long, and who waits for whom."""

from __future__ import annotations

from perflab.published.intervals import Interval, digits, exactly
from perflab.published.parts import Parts, Result, Word

ONE = exactly(1.0)


def _in_flight(parts: Parts) -> Interval:
    times = parts.values("time")
    span = Interval(min(each.low for each in times), max(each.high for each in times))
    return parts.value("rate") * span


def in_flight(parts: Parts) -> Result:
    """Say whether ``rate`` times ``time`` is the number of ``users``.

    In a closed loop without think time every user has a request in flight (Little's law: J. D. C.
    Little, Operations Research 9, 1961). Several times are the ends of a range. Where the product
    is less, something else holds the users back, or the latency leaves a wait out.
    """
    found, users = _in_flight(parts), parts.value("users")
    word = Word.CONSISTENT if found.meets(users) else Word.INCONSISTENT
    return Result(word, f"{found} in flight of {users} users")


def in_flight_at_most(parts: Parts) -> Result:
    """Say whether ``rate`` times ``time`` leaves no more in flight than there are ``users``.

    Little's law where users come and go, each with one request at a time.
    """
    found, users = _in_flight(parts), parts.value("users")
    word = Word.CONSISTENT if found.low <= users.high else Word.INCONSISTENT
    return Result(word, f"{found} in flight, at most {users} can be")


def cost_share(parts: Parts) -> Result:
    """Say how much of what separates ``slow`` and ``fast`` rates the one ``between`` explains.

    Times per request (1 / rate) add up where rates do not. Consistent where the share, or what is
    ``stated`` of it, fits: with ``stated`` the number itself, else that it is nearly all (90%).
    """
    slow, between, fast = (parts.value(name).middle for name in ("slow", "between", "fast"))
    found = (1 / slow - 1 / between) / (1 / slow - 1 / fast)
    if parts.named("stated"):
        stated = parts.value("stated")
        word = Word.CONSISTENT if stated.meets(exactly(found)) else Word.INCONSISTENT
        return Result(word, f"{found:.1%}; stated {stated.middle:.0%}")
    word = Word.CONSISTENT if found >= 0.9 else Word.INCONSISTENT
    return Result(word, f"it explains {found:.0%}; the rest is something else")


def most_of_time(parts: Parts) -> Result:
    """Say whether what separates ``slow`` and ``fast`` rates takes most of the slow one's time.

    Times per request, in a closed loop of as many users.
    """
    found = ONE - parts.value("slow") / parts.value("fast")
    word = Word.CONSISTENT if found.low > 0.5 else Word.INCONSISTENT
    return Result(word, f"share {found}")


def time_each(parts: Parts) -> Result:
    """Say whether ``total`` over ``loops`` leaves at least ``floor``, the least that one can take.

    Where one cannot be that fast, the loops cannot have been as many.
    """
    each, floor = parts.value("total") / parts.value("loops"), parts.value("floor")
    loops = parts.value("total") / floor
    words = (
        f"{digits(each.middle * 1e9)} ns each, at least {digits(floor.middle * 1e9)} ns are needed"
    )
    if each.high < floor.low:
        return Result(Word.INCONSISTENT, f"{words}: at most {digits(loops.middle)} loops")
    return Result(Word.CONSISTENT, words)


def omitted_pings(parts: Parts) -> Result:
    """Say whether a ``latency`` outlasts the ``interval`` of pings that wait for their answers.

    Then pings that were due meanwhile were never sent, and the worst seconds count once
    (coordinated omission: G. Tene, How NOT to Measure Latency, 2013): the percentile is too low.
    """
    latency, interval = parts.value("latency"), parts.value("interval")
    if latency.low > interval.high:
        missed = int(latency.middle / interval.middle)
        return Result(
            Word.CANNOT_TELL, f"{latency} s with pings every {interval} s: {missed} never sent"
        )
    return Result(Word.CONSISTENT, f"{latency} s is within the interval of {interval} s")


def failures_with_broken_off(parts: Parts) -> Result:
    """Say whether ``rate`` of ``requests`` can be the ``threshold`` and what the stop broke off.

    Of ``users`` who wait for their answers each has at most one request under way at the stop.
    Where the failures fit only so, they tell of the stop itself, and their share is none of the
    service's.
    """
    failures = parts.value("requests") * parts.value("rate")
    most = parts.value("threshold") + parts.value("users")
    word = Word.CONSISTENT if failures.low <= most.high else Word.INCONSISTENT
    return Result(
        word,
        f"{failures.middle:.0f} failures; with every user's request broken off at most {most}",
    )


def failures_over_threshold(parts: Parts) -> Result:
    """Say whether a run that stops at ``threshold`` failures can have ``rate`` of ``requests``."""
    failures, threshold = parts.value("requests") * parts.value("rate"), parts.value("threshold")
    word = Word.CONSISTENT if failures.low <= threshold.high else Word.INCONSISTENT
    return Result(
        word,
        f"{failures.middle:.0f} failures, stopped at {threshold}: the stop itself may have broken "
        "off the rest",
    )
