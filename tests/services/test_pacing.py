"""How a line shares its bandwidth, on a clock that the test sets: to the byte and the tick."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from pacing import UNLIMITED, Channel, Line, Mark, Parcel

MS = 1_000_000
SECOND = 1_000_000_000
# What one wake may be late by, where a single connection is busy: a sixteenth of 2 ms.
TICK = 130_000


class Time:
    """A clock that moves on to what is planned next; it is a line's alarm, too."""

    def __init__(self) -> None:
        self.now_ns = 17 * SECOND
        self.line = Line(self.set, lambda: self.now_ns)
        self._order = itertools.count()
        self._planned: list[tuple[int, int, Callable[[], None]]] = []

    def set(self, due_ns: int) -> None:
        self._alarm = alarm = next(self._order)
        heapq.heappush(self._planned, (due_ns, alarm, lambda: self._ring(alarm)))

    def _ring(self, alarm: int) -> None:
        if alarm == self._alarm:
            self.line.wake()

    def at(self, due_ns: int, act: Callable[[], None]) -> None:
        heapq.heappush(self._planned, (17 * SECOND + due_ns, next(self._order), act))

    def run_to(self, end_ns: int) -> None:
        end_ns += 17 * SECOND
        while self._planned and self._planned[0][0] <= end_ns:
            due_ns, _, act = heapq.heappop(self._planned)
            self.now_ns = max(self.now_ns, due_ns)
            act()
        self.now_ns = max(self.now_ns, end_ns)


@dataclass
class Sender:
    """A connection: keeps so many bytes waiting as it may, or sends what it is told."""

    time: Time
    endless: bool = False
    arrived: list[tuple[int, Parcel]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.channel = Channel(self.time.line, self._leaves, self._refill)
        if self.endless:
            self.channel.put(bytes(50_000))

    def _leaves(self, parcel: Parcel, now_ns: int) -> None:
        self.arrived.append((now_ns - 17 * SECOND, parcel))

    def _refill(self) -> None:
        while self.endless and not self.channel.is_full:
            self.channel.put(bytes(50_000))

    def bytes_between(self, begin_ns: int, end_ns: int) -> int:
        return sum(
            len(parcel)
            for at_ns, parcel in self.arrived
            if begin_ns < at_ns <= end_ns and not isinstance(parcel, Mark)
        )


def endless(time: Time, count: int) -> list[Sender]:
    senders = [Sender(time, endless=True) for _ in range(count)]
    for sender in senders:
        sender._refill()
    return senders


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.mark.parametrize("size", [1, 1460, 60_000])
def test_the_last_byte_leaves_when_the_line_had_time_for_all(time: Time, size: int) -> None:
    time.line.limit(1_000_000)
    sender = Sender(time)
    sender.channel.put(bytes(size))
    time.run_to(SECOND)
    assert sender.bytes_between(-1, SECOND) == size
    last_ns = sender.arrived[-1][0]
    assert size * 1000 <= last_ns <= size * 1000 + TICK


@pytest.mark.parametrize(
    ("limits", "connections", "bytes_in_2_s"),
    [((300_000,), (2, 6), 600_000), ((300_000, 600_000), (1, 5), 200_000)],
    ids=["each has its own limit", "all share another, evenly"],
)
def test_a_connection_has_its_limit_and_its_share_whatever_the_others_do(
    time: Time, limits: tuple[float, ...], connections: tuple[int, int], bytes_in_2_s: int
) -> None:
    time.line.limit(*limits)
    senders = endless(time, connections[0])
    time.run_to(2 * SECOND)
    senders += endless(time, connections[1])
    time.run_to(5 * SECOND)
    assert senders[0].bytes_between(SECOND, 2 * SECOND) == pytest.approx(300_000, rel=0.02)
    for sender in senders:
        assert sender.bytes_between(3 * SECOND, 5 * SECOND) == pytest.approx(bytes_in_2_s, rel=0.03)


def test_what_waits_leaves_by_a_new_limit_and_at_once_without_one(time: Time) -> None:
    time.line.limit(1000)
    sender = Sender(time)
    sender.channel.put(b"a" * 90_000)
    sender.channel.put(Mark.END)
    time.at(SECOND, lambda: time.line.limit(50_000))
    time.at(2 * SECOND, lambda: time.line.limit(UNLIMITED))
    time.run_to(2 * SECOND)
    assert sender.bytes_between(-1, SECOND) == pytest.approx(1000, abs=1500)
    assert sender.bytes_between(SECOND, 2 * SECOND - 1) == pytest.approx(50_000, abs=3000)
    assert sender.bytes_between(-1, 2 * SECOND) == 90_000
    assert sender.arrived[-1] == (2 * SECOND, Mark.END)
    assert sender.channel.held_bytes == 0


def test_bytes_whose_receiver_is_gone_hold_up_nothing(time: Time) -> None:
    time.line.limit(100_000)
    gone, other = Sender(time), Sender(time)
    gone.channel.put(bytes(60_000))
    gone.channel.drop()
    gone.channel.put(bytes(60_000))
    gone.channel.put(Mark.CLOSE)
    other.channel.put(bytes(10_000))
    time.run_to(SECOND)
    assert [parcel for _, parcel in gone.arrived] == [Mark.CLOSE]
    assert other.arrived[-1][0] <= 100 * MS + TICK


def test_a_link_that_was_stopped_does_not_catch_up_on_seconds(time: Time) -> None:
    time.line.limit(800_000)
    (sender,) = endless(time, 1)
    time.run_to(SECOND)
    time.now_ns += 10 * SECOND  # stopped, and continued
    time.run_to(11 * SECOND + 10 * MS)
    assert sender.bytes_between(SECOND, 12 * SECOND) < 300_000
