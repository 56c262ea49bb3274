"""Another host's clock: the offset that is told lies within the error that is told."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from perflab.cluster.clocks import Offset, Trip, offset_of

AHEAD_NS = st.integers(-(10**17), 10**17)
WAYS_NS = st.tuples(st.integers(0, 10**8), st.integers(0, 10**8))


def trip(asked_ns: int, there_ns: int, back_ns: int, ahead_ns: int) -> Trip:
    """Return a trip whose two ways took so long, to a clock that is so far ahead."""
    return Trip(asked_ns, asked_ns + there_ns + ahead_ns, asked_ns + there_ns + back_ns)


@given(ahead_ns=AHEAD_NS, ways=st.lists(WAYS_NS, min_size=1, max_size=30))
def test_however_unequal_the_two_ways_are_the_offset_lies_within_its_error(
    ahead_ns: int, ways: list[tuple[int, int]]
) -> None:
    trips = [trip(10**12 + number * 10**9, *way, ahead_ns) for number, way in enumerate(ways)]
    found = Offset.of(trips)
    assert abs(found.offset_ns - ahead_ns) <= found.error_ns
    assert found.error_ns <= (min(map(sum, ways)) + 1) // 2


@given(
    ahead_ns=AHEAD_NS,
    drift_ns=st.integers(-(10**9), 10**9),
    ways=st.tuples(WAYS_NS, WAYS_NS),
    share=st.floats(0, 1),
)
def test_what_clocks_drift_apart_during_a_load_lies_within_the_error(
    ahead_ns: int, drift_ns: int, ways: tuple[tuple[int, int], tuple[int, int]], share: float
) -> None:
    before = Offset.of([trip(0, *ways[0], ahead_ns)])
    after = Offset.of([trip(10**12, *ways[1], ahead_ns + drift_ns)])
    found = before.until(after)
    meanwhile_ns = ahead_ns + round(share * drift_ns)
    # Two instants that are rounded to whole nanoseconds.
    assert abs(found.offset_ns - meanwhile_ns) <= found.error_ns + 1


def test_the_shortest_of_all_trips_decides() -> None:
    ours = iter([0, 900, 1_000, 1_010, 2_000, 2_500])
    theirs = iter([50_450, 51_005, 52_000])

    async def read() -> int:
        return next(theirs)

    found = asyncio.run(offset_of(read, 3, lambda: next(ours)))
    assert found == Offset(50_000, 5)
