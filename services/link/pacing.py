"""The bandwidth of the link: one timer lets out the bytes of all connections, in turns.

As the limit is the same for every connection, one clock that counts bytes instead of time serves
all (the virtual time of fair queueing: A. Parekh, R. Gallager, IEEE/ACM ToN 1(3), 1993): it runs
slower with a lower limit, or with more connections that share one, and nothing that is queued has
to be computed anew.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from heapq import heappop, heappush

UNLIMITED = math.inf
NS_PER_S = 1_000_000_000
# A turn costs some 10 us of CPU, however many bytes it lets out: the more connections there are,
# the less often each has its turn. The last bytes that wait are due at their instant all the same.
TURN_NS_PER_CONNECTION = 400_000
SHORTEST_TURN_NS, LONGEST_TURN_NS = 2_000_000, 40_000_000
# Turns that are due within this part of their interval share a wake.
WAKES_PER_TURN = 16
PACKET_BYTES = 1460
# What is read ahead at least, so that the line is never idle while its sender has more.
READ_AHEAD_BYTES = 65_536
READ_AHEAD_TURNS = 4
# A link that woke later than this was stopped: what it did not let out is not caught up on.
LONGEST_LATE_NS = 250_000_000
ROUNDING_BYTES = 0.01


class Mark(Enum):
    """What can follow the last bytes of a direction."""

    END = "no more bytes in this direction"
    CLOSE = "the connection is gone"


Parcel = bytes | memoryview | Mark
HandOn = Callable[[Parcel, int], None]


class Line:
    """One direction of the link, with all connections on it; ``clock`` is CLOCK_MONOTONIC in ns.

    ``set_alarm`` takes the instant at which :meth:`wake` is to be called.
    """

    def __init__(
        self, set_alarm: Callable[[int], None], clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.is_free = True
        self.clock = clock
        self.read_ahead_bytes = READ_AHEAD_BYTES
        self.bytes_per_s = self.shared_bytes_per_s = UNLIMITED
        self._set_alarm = set_alarm
        self._alarm_ns = 0
        self._holding: set[Channel] = set()
        self._busy = 0
        # The clock of bytes: what each busy connection could have sent up to an instant.
        self._clock_bytes = 0.0
        self._at_ns = 0
        self._bytes_per_ns = 0.0
        self._turn_ns = SHORTEST_TURN_NS
        self._turn_bytes = float(PACKET_BYTES)
        self._due: list[tuple[float, int, Channel]] = []
        self._tickets = 0

    def limit(self, bytes_per_s: float, shared_bytes_per_s: float = UNLIMITED) -> None:
        """Set bytes per second of each connection and of all; what waits leaves by the new limits.

        Connections that have bytes waiting share the second limit evenly.
        """
        self._advance(self.clock())
        self.bytes_per_s, self.shared_bytes_per_s = bytes_per_s, shared_bytes_per_s
        self.is_free = math.isinf(bytes_per_s) and math.isinf(shared_bytes_per_s)
        self._set_turns()
        if self.is_free:
            for channel in tuple(self._holding):
                channel.flush(self._at_ns)
        self._arm()

    def hold(self, channel: Channel, *, holds: bool) -> None:
        """Note that a connection has bytes waiting, or none any more."""
        (self._holding.add if holds else self._holding.discard)(channel)

    def join(self, channel: Channel) -> None:
        """Give a connection turns from now on."""
        self._advance(self.clock())
        channel.sent_to = self._clock_bytes
        channel.is_busy = True
        self._busy += 1
        self._set_turns()
        self._queue(channel, self._next_turn(channel))
        self._arm()

    def leave(self, channel: Channel) -> None:
        """Give a connection no turns any more."""
        self._advance(self.clock())
        channel.is_busy = False
        channel.ticket = 0
        self._busy -= 1
        self._set_turns()
        self._arm()

    def wake(self) -> None:
        """Let out all bytes that are due."""
        now_ns = self.clock()
        self._advance(now_ns)
        self._alarm_ns = 0
        while self._due and self._due[0][0] <= self._clock_bytes + ROUNDING_BYTES:
            _, ticket, channel = heappop(self._due)
            if ticket == channel.ticket:
                self._turn(channel, now_ns)
        self._arm()

    def _turn(self, channel: Channel, now_ns: int) -> None:
        was_full = channel.is_full
        allowed = int(self._clock_bytes - channel.sent_to + ROUNDING_BYTES)
        channel.sent_to += channel.release(allowed, now_ns)
        if not channel.is_busy:
            return
        if channel.held_bytes:
            self._queue(channel, self._next_turn(channel))
        elif was_full:
            # It was this link that did not read: what comes now is not late by the sender's fault.
            self._queue(channel, self._clock_bytes + 2 * self._turn_bytes)
        else:
            self.leave(channel)

    def _next_turn(self, channel: Channel) -> float:
        return channel.sent_to + min(float(channel.held_bytes), self._turn_bytes)

    def _queue(self, channel: Channel, due: float) -> None:
        self._tickets += 1
        channel.ticket = self._tickets
        heappush(self._due, (due, self._tickets, channel))

    def _advance(self, now_ns: int) -> None:
        if self._busy:
            until_ns = min(now_ns, self._alarm_ns + LONGEST_LATE_NS) if self._alarm_ns else now_ns
            self._clock_bytes += self._bytes_per_ns * max(0, until_ns - self._at_ns)
        self._at_ns = now_ns

    def _set_turns(self) -> None:
        rate = min(self.bytes_per_s, self.shared_bytes_per_s / max(1, self._busy))
        self._bytes_per_ns = 0.0 if self.is_free else rate / NS_PER_S
        turn_ns = min(self._busy * TURN_NS_PER_CONNECTION, LONGEST_TURN_NS)
        self._turn_ns = max(turn_ns, SHORTEST_TURN_NS)
        self._turn_bytes = max(self._bytes_per_ns * self._turn_ns, float(PACKET_BYTES))
        self.read_ahead_bytes = max(READ_AHEAD_BYTES, int(READ_AHEAD_TURNS * self._turn_bytes))

    def _arm(self) -> None:
        if not self._due or self.is_free:
            return
        wait_ns = (self._due[0][0] - self._clock_bytes) / self._bytes_per_ns
        due_ns = self._at_ns + 1 + int(max(wait_ns, self._turn_ns / WAKES_PER_TURN))
        if not self._alarm_ns or due_ns < self._alarm_ns:
            self._alarm_ns = due_ns
            self._set_alarm(due_ns)


class Channel:
    """The bytes of one connection, in one direction, that wait for their turn.

    ``hand_on`` takes each parcel that leaves, with the instant in ns; while ``is_full``, whose
    changes ``fullness_changed`` hears of, no more is to be read.
    """

    def __init__(self, line: Line, hand_on: HandOn, fullness_changed: Callable[[], None]) -> None:
        self.held_bytes = 0
        self.is_full = self.is_busy = False
        self.sent_to = 0.0
        self.ticket = 0
        self._line = line
        self._hand_on = hand_on
        self._fullness_changed = fullness_changed
        self._parcels: deque[Parcel] = deque()
        self._is_blocked = self._is_dropped = False

    def put(self, parcel: Parcel) -> None:
        """Take a parcel that is to leave after those that wait."""
        if isinstance(parcel, Mark):
            self._parcels.append(parcel)
            self._pass_marks(self._line.clock())
            return
        if self._is_dropped:
            return
        self._parcels.append(memoryview(parcel))
        self.held_bytes += len(parcel)
        self._line.hold(self, holds=True)
        self._check_fullness()
        if not self.is_busy and not self._is_blocked:
            self._line.join(self)

    def block(self, *, blocked: bool) -> None:
        """Let nothing out while the receiver takes no more."""
        self._is_blocked = blocked
        if blocked and self.is_busy:
            self._line.leave(self)
        elif not blocked and self.held_bytes and not self.is_busy:
            self._line.join(self)

    def release(self, most_bytes: int, now_ns: int) -> int:
        """Let out at most so many bytes, and the marks behind them; return how many left."""
        left = most_bytes
        while left > 0 and self._parcels:
            head = self._parcels.popleft()
            if isinstance(head, Mark):
                self._hand_on(head, now_ns)
                continue
            if len(head) > left:
                self._parcels.appendleft(head[left:])
                head = head[:left]
            left -= len(head)
            self.held_bytes -= len(head)
            self._hand_on(head, now_ns)
        self._pass_marks(now_ns)
        if not self.held_bytes:
            self._line.hold(self, holds=False)
        self._check_fullness()
        return most_bytes - left

    def flush(self, now_ns: int) -> None:
        """Let out everything at once: there is no limit any more."""
        if self.is_busy:
            self._line.leave(self)
        self.release(self.held_bytes, now_ns)

    def drop(self) -> None:
        """Forget the bytes that wait, and those still to come: their receiver is gone."""
        self._is_dropped = True
        self._parcels = deque(parcel for parcel in self._parcels if isinstance(parcel, Mark))
        self.held_bytes = 0
        if self.is_busy:
            self._line.leave(self)
        self.release(0, self._line.clock())

    def _pass_marks(self, now_ns: int) -> None:
        while self._parcels and isinstance(self._parcels[0], Mark):
            self._hand_on(self._parcels.popleft(), now_ns)

    def _check_fullness(self) -> None:
        is_full = self.held_bytes >= self._line.read_ahead_bytes
        if is_full != self.is_full:
            self.is_full = is_full
            self._fullness_changed()
