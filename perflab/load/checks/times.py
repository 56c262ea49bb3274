"""Times of a load as numbers, each with what can be held against it.

One place for all that prints them. Three things can make a percentile or a mean untrue although the
load is valid: requests that were cut off before their end
(:class:`~perflab.statistics.percentiles.Bound`), requests under way while their service was paused
for others to have their turn (they took at least the rest of their time, and at most all of it),
and the client's own lateness, which every time holds. What the client took of a request is known in
part: it started late by so much (generator lag), and stood still for so long while the request was
under way. For the rest, delays shorter than a tick of the probe, there is a sample: a percentile is
taken to hold as much of it as the sample has at that percentile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from perflab.load.clients.outcome import CENSORED_CODES
from perflab.load.records.looks import Looks
from perflab.load.records.result import LoadResult
from perflab.load.workload.windows import BEGIN, COUNTED, END, time_within, window_of
from perflab.statistics.percentiles import OF_LOADS, Bound, bounds_of, mean_bound, percentiles_of

# What the client itself may add to a time that it reports.
MAX_CLIENT_SHARE = 0.10
NO_TEMPLATE = -1
OF_ROWS = ("known", "elapsed", "late", "stalled", "paused")
NEVER = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Number:
    """A time in ms; ``client_ms`` is how much of it may be the client's own."""

    bound: Bound
    client_ms: float = 0.0

    @property
    def value(self) -> float:
        """Return the time; NaN where the sample is too small or what was cut off could move it."""
        return self.bound.value

    @property
    def at_least(self) -> float:
        """Return what it is at least where what was cut off could move it, else NaN."""
        return self.bound.at_least

    @property
    def is_the_clients(self) -> bool:
        """Whether more than a tenth of it may be the client's own."""
        return self.client_ms > MAX_CLIENT_SHARE * self.bound.low

    @property
    def comparable(self) -> float:
        """Return the time where nothing is held against it, else NaN."""
        return math.nan if self.is_the_clients else self.value


@dataclass(frozen=True)
class Times:
    """Times between two instants, in ns.

    Attributes
    ----------
    known : array
        Of successes.
    elapsed : array
        Of requests that were cut off, until then.
    late : array
        How much of each of the ``known`` the client was late to start it, or stood still.
    stalled : array
        How much of that is stalls of the client.
    short_ms : array
        Delays of the client's event loop that are shorter than a tick, in ms.
    paused : array
        For how much of each of the ``known`` its service was paused; empty where it never was.
    """

    known: np.ndarray
    elapsed: np.ndarray
    late: np.ndarray
    stalled: np.ndarray
    short_ms: np.ndarray
    paused: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def awake(self) -> np.ndarray:
        """Return the ``known`` times without those in which the service was paused."""
        awake_ns: np.ndarray = self.known - self.paused if len(self.paused) else self.known
        return awake_ns

    def numbers(self, shares: Sequence[float] = OF_LOADS) -> dict[str, Number]:
        """Return percentiles (``p50``...), ``max`` and ``mean``, in ms."""
        both = (self.awake, self.known)
        lows, highs = (bounds_of(each, self.elapsed, shares) for each in both)
        punctual = _statistics(self.known - self.late, shares)
        usual = _statistics(self.known, shares)
        short = self._short(shares)
        bounds_by_name = {
            f"p{share:g}": Bound(low.low, highs[share].high) for share, low in lows.items()
        }
        least, most = (mean_bound(each, self.elapsed) for each in both)
        bounds_by_name |= {"max": self._longest(), "mean": Bound(least.low, most.high)}
        return {
            name: Number(
                Bound(bound.low / 1e6, bound.high / 1e6),
                (usual[name] - punctual[name]) / 1e6 + short[name],
            )
            for name, bound in bounds_by_name.items()
        }

    def without_stalls(self, shares: Sequence[float]) -> dict[str, tuple[float, float]]:
        """Return each number of the successes as it is, and as low as it could be, in ms.

        As low as it could be had the client never stood still; NaN where the sample is too small.
        """
        usual = _statistics(self.known, shares)
        lower = _statistics(self.known - self.stalled, shares)
        return {name: (usual[name] / 1e6, lower[name] / 1e6) for name in usual if name != "max"}

    def mean_late_ms(self) -> float:
        """Return how much of the mean is the client's own."""
        late_ms = float(self.late.mean()) / 1e6 if len(self.late) else 0.0
        return late_ms + (float(self.short_ms.mean()) if len(self.short_ms) else 0.0)

    @property
    def paused_share(self) -> float:
        """Return by what share pauses of the service could have made the mean longer."""
        awake_ns = int(self.awake.sum())
        return int(self.paused.sum()) / awake_ns if awake_ns else 0.0

    def _short(self, shares: Sequence[float]) -> dict[str, float]:
        names = [*(f"p{share:g}" for share in shares), "max", "mean"]
        if not len(self.short_ms):
            return dict.fromkeys(names, 0.0)
        values = np.percentile(self.short_ms, [*shares, 100]).tolist()
        return dict(zip(names, [*values, float(self.short_ms.mean())], strict=True))

    def _longest(self) -> Bound:
        if not len(self.known) + len(self.elapsed):
            return Bound(math.nan, math.nan)
        awake, known = (
            float(max(each.max(initial=0), self.elapsed.max(initial=0)))
            for each in (self.awake, self.known)
        )
        return Bound(awake, math.inf if len(self.elapsed) else known)


def _statistics(values_ns: np.ndarray, shares: Sequence[float]) -> dict[str, float]:
    named = {f"p{share:g}": value for share, value in percentiles_of(values_ns, shares).items()}
    some = len(values_ns) > 0
    longest = float(values_ns.max()) if some else math.nan
    return {**named, "max": longest, "mean": float(values_ns.mean()) if some else math.nan}


def times_of(
    result: LoadResult,
    since: str = "planned_ns",
    until: str = "done_ns",
    chosen: Mapping[int, int] | None = None,
) -> Times:
    """Return the times of the measure stage between two instants of a request.

    Parameters
    ----------
    chosen : mapping, optional
        Worker to the code of the only template that counts; other workers have none of it.
    """
    parts: dict[str, list[np.ndarray]] = {name: [] for name in OF_ROWS}
    for worker, rows in result.measured_by_worker():
        own = rows if chosen is None else rows[rows["template"] == chosen.get(worker, NO_TEMPLATE)]
        found = of_rows(result.looks[worker], own, since, until, result.pauses)
        for name, values in found.items():
            parts[name].append(values)
    joined = {
        name: np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
        for name, pieces in parts.items()
    }
    return Times(**joined, short_ms=short_delays_ms(result.judged_looks))


def of_rows(
    looks: Looks, rows: np.ndarray, since: str, until: str, pauses: np.ndarray = NEVER
) -> dict[str, np.ndarray]:
    """Return what the ``Times`` of a worker's rows between two instants are made of (OF_ROWS)."""
    # What never came to the first instant has no time from there on.
    rows = rows[rows[since] > 0]
    is_cut = np.isin(rows["error"], CENSORED_CODES)
    # A request that was sent has waited for its connection, whatever became of it.
    has_end = (rows["error"] == 0) | (is_cut & (rows[until] > 0) & (until != "done_ns"))
    own, cut = rows[has_end], rows[is_cut & ~has_end]
    stalled = looks.stood_still_ns(own[since], own[until])
    late = stalled
    if since == "planned_ns":
        # All of its lag, and stalls after it.
        lag = own["started_ns"] - own["planned_ns"]
        late = lag + looks.stood_still_ns(own["started_ns"], own[until])
    return {
        "known": own[until] - own[since],
        "elapsed": cut["done_ns"] - cut[since],
        "late": late,
        "stalled": stalled,
        "paused": time_within(own[since], own[until], pauses),
    }


def shown(name: str, numbers: Mapping[str, Number]) -> dict[str, dict[str, float | None]]:
    """Return times as a summary has them: values, and what is held against them, by name."""
    bounds = {each: number.at_least for each, number in numbers.items()}
    own: dict[str, float | None]
    own = {each: number.client_ms for each, number in numbers.items() if number.is_the_clients}
    return {
        f"{name}_ms": {each: known(number.value) for each, number in numbers.items()},
        f"{name}_at_least_ms": {each: low for each, low in bounds.items() if not math.isnan(low)},
        f"{name}_client_ms": own,
    }


def known(value: float) -> float | None:
    """Return a number as JSON can have it: None in place of NaN."""
    return None if math.isnan(value) else value


def short_delays_ms(looks: Sequence[Looks]) -> np.ndarray:
    """Return the delays of the client's event loops that are no stalls, in ms."""
    parts = [own.late_ms[~own.is_stall] for own in looks]
    return np.concatenate(parts) if parts else np.zeros(0)


FIELDS = ("planned_ns", "sent_ns", "done_ns", "error")


def window_table(result: LoadResult) -> pd.DataFrame:
    """Return a row per window whose first part was let settle and whose rest counts.

    Returns
    -------
    DataFrame
        ``window``, its instants ``begin_ns``, ``counted_ns`` and ``end_ns``; ``completed``, the
        successes done in the counted part, and ``finished``, all successes until the next window
        begins: what CPU time is divided by;
        ``mean_ms``, the mean response time of the successes planned in the counted part, without
        the pauses of their service;
        ``sent_after``, what was planned in the window and sent after its end; ``in_flight``, what
        had begun and not ended at its end, and ``carried_over``, what of that was still there when
        the next window began (0 after the last): it meets other requests than were wanted.

    A load that had no windows raises ValueError.
    """
    if result.windows is None:
        raise ValueError("the load had no windows: give its arrivals windows=Windows(...)")
    planned, sent, done, error = (
        np.concatenate([part[name] for part in result.rows]) for name in FIELDS
    )
    windows, good = result.windows, error == 0
    by_planned, by_done = np.sort(planned), np.sort(done)
    good_done = np.sort(done[good])
    begin, counted, end = windows[:, BEGIN], windows[:, COUNTED], windows[:, END]
    follows = np.append(begin[1:], max(int(end[-1]), int(done.max(initial=0))) + 1)
    table = pd.DataFrame(
        {
            "window": np.arange(len(windows)),
            "begin_ns": begin,
            "counted_ns": counted,
            "end_ns": end,
            "completed": _until(good_done, end) - _until(good_done, counted),
            "finished": _until(good_done, follows) - _until(good_done, begin),
            "mean_ms": _means_ms(planned[good], done[good], windows, result.pauses),
            "sent_after": _sent_after(planned, sent, windows),
            "in_flight": np.searchsorted(by_planned, end) - _until(by_done, end),
            "carried_over": np.searchsorted(by_planned, follows) - _until(by_done, follows),
        }
    )
    kept: pd.DataFrame = table[end > counted].reset_index(drop=True)
    return kept


def _until(instants: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return how many of some instants, in order, are not after each bound."""
    numbers: np.ndarray = np.searchsorted(instants, bounds, side="right")
    return numbers


def _sent_after(planned: np.ndarray, sent: np.ndarray, windows: np.ndarray) -> np.ndarray:
    own = window_of(planned, windows)
    late = own[(own >= 0) & (sent >= windows[own, END])]
    return np.bincount(late, minlength=len(windows))


def _means_ms(
    planned: np.ndarray, done: np.ndarray, windows: np.ndarray, pauses: np.ndarray
) -> np.ndarray:
    order = np.argsort(planned)
    awake = done - planned - time_within(planned, done, pauses)
    sums = np.concatenate([[0], np.cumsum(awake[order])])
    places = np.searchsorted(planned[order], windows[:, COUNTED:])
    totals, numbers = (each[:, 1] - each[:, 0] for each in (sums[places], places))
    means_ms: np.ndarray = np.full(len(windows), np.nan)
    np.divide(totals / 1e6, numbers, out=means_ms, where=numbers > 0)
    return means_ms
