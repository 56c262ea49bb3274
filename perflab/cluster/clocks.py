"""How far the clocks of other hosts are ahead of this one's, with a bound on the error.

CLOCK_MONOTONIC counts from another instant on every host. A reading of another host's clock was
made at some instant between our question and its answer: so the middle of the round trip is off by
half of it at most, however unequal the two ways are (F. Cristian, "Probabilistic clock
synchronization", Distributed Computing 3, 1989). Of several trips the shortest knows best.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

TRIPS = 30


@dataclass(frozen=True)
class Trip:
    """A question and its answer: our clock before and after it, theirs in between (ns)."""

    asked_ns: int
    theirs_ns: int
    answered_ns: int

    @property
    def length_ns(self) -> int:
        """Return how long it took."""
        return self.answered_ns - self.asked_ns


@dataclass(frozen=True)
class Offset:
    """How far another clock is ahead of ours, and by how much that may be wrong (ns)."""

    offset_ns: int
    error_ns: int

    @classmethod
    def of(cls, trips: Sequence[Trip]) -> Offset:
        """Take it from the shortest of some round trips."""
        shortest = min(trips, key=lambda trip: trip.length_ns)
        middle_ns = (shortest.asked_ns + shortest.answered_ns) // 2
        # Halves are rounded up: the bound is one.
        return cls(shortest.theirs_ns - middle_ns, (shortest.length_ns + 1) // 2)

    def until(self, later: Offset) -> Offset:
        """Return the offset between two readings: their mean.

        Its error reaches as far as that of each of them, so that it also covers what the clocks
        drifted apart meanwhile.
        """
        low = min(self.offset_ns - self.error_ns, later.offset_ns - later.error_ns)
        high = max(self.offset_ns + self.error_ns, later.offset_ns + later.error_ns)
        mean_ns = (self.offset_ns + later.offset_ns) // 2
        return Offset(mean_ns, max(high - mean_ns, mean_ns - low))


def monotonic_ns() -> int:
    """Return this host's CLOCK_MONOTONIC; runs on a worker."""
    return time.monotonic_ns()


async def offset_of(
    read: Callable[[], Awaitable[int]],
    trips: int = TRIPS,
    clock: Callable[[], int] = time.monotonic_ns,
) -> Offset:
    """Read another host's clock some times, and return how far it is ahead.

    ``read`` asks the host's worker directly: a way through the scheduler would be a longer trip,
    and the error half of that.
    """
    made = []
    for _ in range(trips):
        asked_ns = clock()
        theirs_ns = await read()
        made.append(Trip(asked_ns, theirs_ns, clock()))
    return Offset.of(made)
