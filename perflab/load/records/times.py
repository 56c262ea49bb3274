"""Times of a load as numbers, each with its bound and the client's share.

Four things can make a percentile or a mean untrue although the load is valid: requests that were
cut off before their end (:class:`~perflab.statistics.quantiles.Bound`), requests that failed (how
long they would have taken is not known: between no time at all and the time-out), requests under
way while their service was paused for others to have their turn (they took at least the rest of
their time, and at most all of it), and the client's own lateness, which every time holds. Two parts
of that are known for each request: its generator lag, and how long the client stood still while the
request was under way. Of the rest, delays shorter than a tick of the probe, there is a sample: a
percentile is taken to hold as much of it as the sample has at that percentile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from perflab.load.clients.outcome import CENSORED_CODES
from perflab.load.records.wakeups import Wakeups
from perflab.load.workload.windows import time_within
from perflab.recordings.responses import MAX_CLIENT_SHARE
from perflab.statistics.quantiles import OF_LOADS, Bound, bounds_of, mean_bound, percentiles_of

OF_ROWS = ("known", "elapsed", "late", "paused", "failed")
NEVER = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Number(Bound):
    """A time in ms between its ends; ``client_ms`` is how much of it may be the client's own.

    It has no ``value`` where the sample is too small, cut-off requests could move it, or it may be
    the time of a failed request. Where some failed, ``of_successes`` is the number without them.
    """

    client_ms: float = 0.0
    of_successes: Bound | None = None

    @property
    def value(self) -> float:
        """Return the number of the successes if all that may be true has two ends, else NaN."""
        if self.of_successes is None:
            return super().value
        return math.nan if math.isinf(self.high) else self.of_successes.value

    @property
    def without_client(self) -> float:
        """The lower end less what may be the client's own, as far as that is known.

        Where no answer came, nothing is known of the client's part: the time-out is the bound.
        """
        if math.isnan(self.low) or math.isnan(self.client_ms):
            return self.low
        return max(0.0, self.low - self.client_ms)

    @property
    def at_least(self) -> float:
        """Return the lower end, less the client's part, if there is no ``value``; else NaN.

        NaN as well where it is 0, which says nothing.
        """
        return (self.without_client or math.nan) if math.isnan(self.value) else math.nan

    @property
    def is_the_clients(self) -> bool:
        """Whether more than a tenth of the time may be the client's own."""
        return self.client_ms > MAX_CLIENT_SHARE * self.low


@dataclass(frozen=True)
class Times:
    """Times between two instants, in ns.

    ``known`` are the times of successes, ``elapsed`` those of cut-off requests until then. ``late``
    is the part of each known time in which the client was late to start or stood still, ``paused``
    the part in which the service was paused (empty: never). ``short_ms`` are delays of the client's
    event loop shorter than a tick, in ms. ``failed`` has a 0 for each request that failed, which
    would have taken ``timeout_ns`` at most.
    """

    known: np.ndarray
    elapsed: np.ndarray
    late: np.ndarray
    short_ms: np.ndarray
    paused: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    failed: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    timeout_ns: float = math.inf

    @property
    def awake(self) -> np.ndarray:
        """Return the ``known`` times less the pauses of the service."""
        return self.known - self.paused if len(self.paused) else self.known

    def numbers(self, shares: Sequence[float] = OF_LOADS) -> dict[str, Number]:
        """Return percentiles (``p50``...), ``max`` and ``mean``, in ms."""
        known = self._bounds(self.failed[:0], shares)
        bounds_by_name = self._bounds(self.failed, shares) if len(self.failed) else known
        punctual = _statistics(self.known - self.late, shares)
        usual = _statistics(self.known, shares)
        short = self._short(shares)
        return {
            name: Number(
                bound.low / 1e6,
                bound.high / 1e6,
                (usual[name] - punctual[name]) / 1e6 + short[name],
                Bound(known[name].low / 1e6, known[name].high / 1e6) if len(self.failed) else None,
            )
            for name, bound in bounds_by_name.items()
        }

    def _bounds(self, failed: np.ndarray, shares: Sequence[float]) -> dict[str, Bound]:
        """Return the ends of all numbers, in ns, if so many requests failed."""
        unknown = np.concatenate([self.elapsed, failed])
        lows, highs = (bounds_of(times, unknown, shares) for times in (self.awake, self.known))
        by_name = {f"p{share:g}": Bound(low.low, highs[share].high) for share, low in lows.items()}
        least, most = (
            mean_bound(np.concatenate([times, failed]), self.elapsed)
            for times in (self.awake, self.known)
        )
        # What failed may have taken its time-out.
        more = len(failed) * self.timeout_ns / (len(self.known) + len(failed)) if len(failed) else 0
        return by_name | {"max": self._longest(failed), "mean": Bound(least.low, most.high + more)}

    @property
    def paused_share(self) -> float:
        """Return the share by which pauses of the service could have lengthened the mean."""
        awake_ns = int(self.awake.sum())
        return int(self.paused.sum()) / awake_ns if awake_ns else 0.0

    def _short(self, shares: Sequence[float]) -> dict[str, float]:
        names = [*(f"p{share:g}" for share in shares), "max", "mean"]
        if not len(self.short_ms):
            return dict.fromkeys(names, 0.0)
        values = np.percentile(self.short_ms, [*shares, 100]).tolist()
        return dict(zip(names, [*values, float(self.short_ms.mean())], strict=True))

    def _longest(self, failed: np.ndarray) -> Bound:
        if not len(self.known) + len(self.elapsed):
            return Bound(math.nan, math.nan)
        awake, known = (
            float(max(times.max(initial=0), self.elapsed.max(initial=0)))
            for times in (self.awake, self.known)
        )
        return Bound(awake, math.inf if len(self.elapsed) + len(failed) else known)


def _statistics(values_ns: np.ndarray, shares: Sequence[float]) -> dict[str, float]:
    named = {f"p{share:g}": value for share, value in percentiles_of(values_ns, shares).items()}
    some = len(values_ns) > 0
    longest = float(values_ns.max()) if some else math.nan
    return {**named, "max": longest, "mean": float(values_ns.mean()) if some else math.nan}


def of_rows(
    wakeups: Wakeups, rows: np.ndarray, since: str, until: str, pauses: np.ndarray = NEVER
) -> dict[str, np.ndarray]:
    """Return the arrays (``OF_ROWS``) of the ``Times`` of a worker's rows between two instants."""
    # A request that never reached the first instant has no time.
    rows = rows[rows[since] > 0]
    is_cut = np.isin(rows["error"], CENSORED_CODES)
    # A request that was sent has waited for its connection, whatever became of it; one that was cut
    # off may have had its first byte.
    has_come = (rows[until] > 0) & (until != "done_ns")
    has_end = (rows["error"] == 0) | (has_come & (is_cut | (until == "sent_ns")))
    ended, cut = rows[has_end], rows[is_cut & ~has_end]
    late = wakeups.stood_still_ns(ended[since], ended[until])
    if since == "planned_ns":
        # The lag holds the stalls before the start; those after it are added.
        lag = ended["started_ns"] - ended["planned_ns"]
        late = lag + wakeups.stood_still_ns(ended["started_ns"], ended[until])
    return {
        "known": ended[until] - ended[since],
        "elapsed": cut["done_ns"] - cut[since],
        "late": late,
        "paused": time_within(ended[since], ended[until], pauses),
        "failed": np.zeros(len(rows) - len(ended) - len(cut), dtype=np.int64),
    }


def short_delays_ms(wakeups: Sequence[Wakeups]) -> np.ndarray:
    """Return the delays of the client's event loops that are no stalls, in ms."""
    parts = [one.late_ms[~one.is_stall] for one in wakeups]
    return np.concatenate(parts) if parts else np.zeros(0)
