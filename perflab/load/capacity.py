"""Capacity: the highest load that meets an objective, with an interval, by steps and bisection.

A probe is one load at one level. Probes are noisy, so the bounds of the interval are levels whose
repeats agreed: all met the objective below, none met it above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from perflab.errors import LoadError
from perflab.load import report
from perflab.load.checks.selfcheck import check
from perflab.load.checks.trend import CLIENT_TIME
from perflab.load.records.answers import ByName
from perflab.load.records.result import LoadResult
from perflab.load.summary import LoadSummary
from perflab.load.workload.arrivals import ClosedLoop, Stage
from perflab.load.workload.workload import StopRules, Workload
from perflab.recordings.responses import CLIENT_LATE
from perflab.recordings.schema import Reason
from perflab.statistics.quantiles import needed_n

Limit = Literal["server", "client", "unknown", "range"]
LONGEST_PROBE_S = 60.0
MIN_SHARE_OF_OFFERED = 0.97
MIN_GROWN_MS = 1.0
MAX_GROWN_SHARE = 0.5
MOST_FAILED = 0.01
# A stall of the machine spoils one probe of a level, a limit of the client spoils all.
MOST_SPOILT = 3


@dataclass(frozen=True)
class ProbeLoad:
    """The load of a probe: its summary, the lengths of its counted window and of its warm-up.

    ``paced_rps`` is the rate that users of a constant cycle plan; 0 for others.
    """

    summary: LoadSummary
    window_s: float
    warmup_s: float = 0.0
    paced_rps: float = 0.0


@dataclass(frozen=True)
class Probe:
    """One load at one level.

    ``missed`` lists the objectives it missed, ``faults`` the faults of the client. ``unclear`` says
    why the load neither held nor missed, although no fault is known to be the client's. ``load`` is
    what it was judged by.
    """

    level: float
    missed: tuple[str, ...] = ()
    faults: tuple[Reason, ...] = ()
    unclear: tuple[Reason, ...] = ()
    load: ProbeLoad | None = None

    @property
    def spoilt(self) -> bool:
        """Whether the probe says nothing about its level."""
        return bool(self.faults or self.unclear)

    def time_ms(self, times: str, name: str) -> float:
        """Return a time of its summary, as ``p95`` of ``response_time``; NaN if unknown."""
        of = getattr(self.load.summary, times) if self.load else None
        value = of.ms[name] if of else None
        return math.nan if value is None else value


@dataclass(frozen=True)
class Capacity:
    """The limit lies between ``low`` (held) and ``high`` (did not hold; None: not found).

    ``limit`` says whose limit it is: the server's, the client's, unknown, or the end of the range.
    """

    low: float
    high: float | None
    limit: Limit
    probes: tuple[Probe, ...]

    @property
    def sentence(self) -> str:
        """Return the result as a sentence."""
        low, high = _text(self.low), _text(self.high or 0.0, math.ceil)
        if self.limit == "client":
            why = next(one.faults[0] for one in self._of_limit() if one.faults)
            return f"at least {low}: beyond it the client is the limit ({why})"
        if self.limit == "unknown":
            why = next(one.unclear[0] for one in self._of_limit() if one.unclear)
            return f"at least {low}: it is unknown whose limit {high} is ({why})"
        if self.high is None:
            tries = [one for one in self.probes if one.level > self.low and one.missed]
            if not tries:
                return f"at least {low}; no higher level failed"
            lowest = min(one.level for one in tries)
            missed = sum(one.level == lowest for one in tries)
            of = sum(one.level == lowest for one in self.probes)
            return (
                f"at least {low}; {_text(lowest)} failed in {missed} of {of} tries, "
                "which is not certain"
            )
        if not self.low:
            return f"below {high}: the lowest level tried missed the objective"
        return f"between {low} (held) and {high} (did not hold); the server's limit"

    def _of_limit(self) -> Iterator[Probe]:
        return (probe for probe in reversed(self.probes) if probe.level == self.high)


def _text(level: float, rounded: Callable[[float], int] = math.floor) -> str:
    """Return a level, rounded down or up to a whole number, or to two decimals below 100."""
    return f"{rounded(level):,}" if level >= 100 else f"{rounded(100 * level) / 100:g}"


def search(
    probe: Callable[[float], Probe],
    start: float,
    most: float,
    tolerance: float = 0.05,
    repeats: int = 3,
    whole: bool = False,
) -> Capacity:
    """Search the highest level that holds, from ``start`` up to ``most``.

    Levels double and are then bisected until the bounds are within ``tolerance`` (relative). A
    level holds when most of its ``repeats`` probes hold; at a bound all must agree. Levels may be
    ``whole`` numbers (users). The result has every probe, in the order they were sent.
    """
    probes: list[Probe] = []

    def level_of(value: float) -> float:
        return max(1.0, float(round(value))) if whole else value

    def holds(level: float) -> bool:
        """Probe the level until the majority of its probes is certain."""
        good = bad = spoilt = 0
        while max(good, bad) <= repeats // 2:
            probes.append(probe(level))
            if probes[-1].spoilt:
                spoilt += 1
                if spoilt == MOST_SPOILT:
                    raise _Refused(level, "client" if probes[-1].faults else "unknown")
                continue
            good, bad = good + (not probes[-1].missed), bad + bool(probes[-1].missed)
        return good > bad

    def agreed(level: float, expected: bool) -> bool:
        """Probe a level until its repeats agree, one disagrees, or too many are spoilt."""
        while True:
            repeated = [one for one in probes if one.level == level]
            clear = [one for one in repeated if not one.spoilt]
            if len(repeated) - len(clear) >= MOST_SPOILT:
                return False
            if any(bool(one.missed) == expected for one in clear):
                return False
            if len(clear) >= repeats:
                return True
            probes.append(probe(level))

    def held(most: float) -> float:
        """Return the highest level up to this one at which all repeats hold; 0 if there is none."""
        levels = sorted({one.level for one in probes if one.level <= most}, reverse=True)
        return next((level for level in levels if agreed(level, True)), 0.0)

    low, high, level = 0.0, None, level_of(start)
    try:
        while high is None:
            if holds(level):
                low = level
                if level >= most:
                    return Capacity(held(low), None, "range", tuple(probes))
                level = min(most, level_of(level * 2))
            else:
                high = level
        while high > low * (1 + tolerance) and (high - low > 1 or not whole):
            middle = level_of((low * high) ** 0.5 if low else high / 2)
            if middle in (low, high) or middle < start * tolerance:
                break
            if holds(middle):
                low = middle
            else:
                high = middle
        levels = sorted({one.level for one in probes})
        above = (level for level in levels if level >= high and agreed(level, False))
        low, high = held(low), next(above, None)
    except _Refused as refused:
        level, limit = refused.args
        return Capacity(held(low), level, limit, tuple(probes))
    return Capacity(low, high, "server", tuple(probes))


class _Refused(Exception):
    """Too many probes of a level were spoilt; it holds the level, and whose limit that is."""


def at_level(workload: Workload, level: float, duration_s: float, warmup_s: float) -> Workload:
    """Return the workload with another rate or number of users, and without stop rules.

    A probe at a low rate, or with few users who keep a constant cycle, is made longer, up to a
    minute, until its sample can support the percentiles of the objectives.
    """
    arrivals = workload.arrivals
    rate = rate_of(workload, level)
    if rate:
        # Gaps of chunks do not count: each answer has many.
        counts = (needed_n(one.percentile) for one in workload.objectives if one.of != "gap")
        needed_s = 1.1 * max(counts, default=0) / rate
        duration_s = max(duration_s, min(needed_s, LONGEST_PROBE_S))
    update: dict[str, Any] = {"warmup_s": warmup_s}
    if isinstance(arrivals, ClosedLoop):
        update |= {
            "users": int(level),
            "requests": 0,
            "duration_s": duration_s,
            "warmup_requests": 0,
            "max_duration_s": duration_s + warmup_s,
            "ramp_s": min(arrivals.ramp_s, warmup_s),
        }
    else:
        update["stages"] = (Stage(rate=level, duration_s=duration_s + warmup_s),)
    changed = arrivals.model_copy(update=update)
    return workload.model_copy(update={"arrivals": changed, "stop": StopRules()})


def rate_of(workload: Workload, level: float) -> float:
    """Return the requests per second planned at a level; 0 where the answers decide."""
    if not isinstance(workload.arrivals, ClosedLoop):
        return level
    return level / workload.arrivals.pacing_s if workload.arrivals.pacing_s else 0.0


def judged(level: float, load: ProbeLoad) -> Probe:
    """Turn a load, with its judged objectives, into a probe.

    The client's faults are those of its self-check, and the time that it may have added where an
    objective would hold without it; errors are the server's; reasons that may be either's leave the
    probe unclear. If the objectives are missed and the client was late as well, the fault is the
    client's: nobody can tell the server's share. If they are held although it was late, they hold.
    Where users fell behind ``paced_rps``, too few answers to judge an objective are the server's
    miss.

    Raises
    ------
    LoadError
        Too few answers to judge an objective, although none failed.
    """
    missed: list[str] = []
    faults: list[Reason] = []
    summary = load.summary
    offered, reached = summary.offered_rps, summary.throughput_rps or 0.0
    is_slow = reached < MIN_SHARE_OF_OFFERED * load.paced_rps
    for objective in summary.objectives:
        name, found_ms = objective.objective.partition("<")[0], objective.found_ms
        if found_ms is not None:
            if not objective.held:
                missed.append(f"{name} {found_ms:.4g} ms > {objective.below_ms:g} ms")
            if objective.held is None:
                faults.append(Reason(code=CLIENT_TIME, side="client", text=objective.why))
        elif missed or summary.errors or is_slow:
            missed.append(f"{name} unknown")
        else:
            raise LoadError(
                f"{summary.requests} answers at a level of {level:g} are too few to know {name}: "
                "make the probes longer (--duration), or begin higher"
            )
    if summary.requests and summary.errors > MOST_FAILED * summary.requests:
        missed.append(f"{summary.errors} of {summary.requests} requests failed")
    growth, middle = summary.response_growth_ms_per_s, summary.response_time.ms["p50"] or 0.0
    grown_ms = growth * summary.duration_s
    if grown_ms > max(MIN_GROWN_MS, MAX_GROWN_SHARE * middle):
        missed.append(f"response time grows by {growth:.3g} ms per second: a queue builds up")
    if offered:
        # What is under way at the end was not missed: as much as came in a time of response before
        # a queue built up (Little's law).
        before_s = max(0.0, middle - max(0.0, grown_ms) / 2) / 1e3
        late_s = max(0.0, before_s - load.warmup_s)
        due = offered * max(0.0, 1 - late_s / load.window_s) if load.window_s else 0.0
        if reached < MIN_SHARE_OF_OFFERED * due:
            missed.append(f"{reached:.4g}/s answered of {offered:.4g}/s offered")
    missed += [reason.text for reason in summary.reasons if reason.code == report.UNSEEN]
    # A late client lengthens times, and what it kept back arrives together: what held nevertheless
    # does hold.
    faults += [
        reason
        for reason in summary.reasons
        if reason.side == "client" and (missed or reason.code != CLIENT_LATE)
    ]
    unclear = tuple(reason for reason in summary.reasons if reason.side == "unknown")
    return Probe(level, tuple(missed), tuple(faults), unclear, load)


def probed(
    send: Callable[[Workload], LoadResult],
    workload: Workload,
    level: float,
    duration_s: float,
    warmup_s: float,
    checked: ByName | None = None,
) -> Probe:
    """Send a workload at a level (:func:`at_level`), judge it, and remove its record.

    Answers unlike the ``checked`` ones (None: unlike its first) miss the objective.
    """
    changed = at_level(workload, level, duration_s, warmup_s)
    result = send(changed)
    try:
        summary = report.summary(result, changed, check(result, changed), checked)
    finally:
        result.discard()
    paced_rps = rate_of(changed, level) if isinstance(changed.arrivals, ClosedLoop) else 0.0
    return judged(level, ProbeLoad(summary, result.counted_ns / 1e9, warmup_s, paced_rps))
