"""Services that take turns: they are resumed and paused by the clock of their loads."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import pandas as pd

from perflab.stacks.backend import Instance
from perflab.trials.designs import Rounds, Turn

clock = time.monotonic_ns
LOOK_S = 0.25
# Requests may end in this share of a gap; in the rest one service is paused and another resumed.
ENDING_SHARE = 0.75


class Taken(NamedTuple):
    """A turn that a treatment has had.

    ``late_ns`` is how long after the begin of its window the last of its own services was resumed
    (0: before it).
    """

    round: int
    treatment: str
    late_ns: int


@dataclass(frozen=True)
class TurnsTaken:
    """All turns, and the pauses between them.

    ``table`` has a row per treatment and round, with the columns of :class:`Taken`, in the order
    of time. ``pauses`` has, by treatment, the begin and end of the times in which its own services
    were paused, or about to be paused or resumed (ns, shape (pauses, 2)).
    """

    table: pd.DataFrame
    pauses: Mapping[str, np.ndarray]


def take_turns(
    rounds: Rounds,
    services: Mapping[str, Sequence[Instance]],
    start_ns: int,
    is_over: Callable[[], bool] = lambda: False,
) -> TurnsTaken:
    """Keep only the services awake whose turn it is; return when all turns are over.

    Late in the gap after a window its services are paused and the next are resumed: until then
    requests in flight can end. At the end all services are awake.

    Parameters
    ----------
    services : mapping
        Treatment to the services that it alone has. Shared services are never paused.
    start_ns : int
        The planned start of the loads (CLOCK_MONOTONIC).
    is_over : callable
        Tells whether the loads have ended before their time.
    """
    turns = rounds.turns()
    accounts = {name: _Account(services[name]) for name in rounds.treatments}
    taken: list[Taken] = []
    ends_ns = round(rounds.gap_ms * 1e6 * ENDING_SHARE)
    with _all_awake_afterwards(accounts.values()):
        late_ns = _resume(accounts, turns[0], start_ns)
        for turn, after in zip_longest(turns, turns[1:]):
            if not _sleep_until(start_ns + round(turn.end_s * 1e9) + ends_ns, is_over):
                break
            was_late_ns = late_ns
            account = accounts[turn.treatment]
            account.pause()
            late_ns = _resume(accounts, after, start_ns) if after else 0
            taken.append(Taken(turn.round, turn.treatment, was_late_ns))
    table = pd.DataFrame(taken, columns=Taken._fields)
    return TurnsTaken(table, {name: account.pauses() for name, account in accounts.items()})


class _Account:
    """A treatment's own services, and when they were paused."""

    def __init__(self, services: Sequence[Instance]) -> None:
        self._services = services
        self._paused_ns: list[tuple[int, int]] = []
        # 0 while the services are awake.
        self._since_ns = 0

    def pause(self) -> None:
        self._since_ns = self._since_ns or clock()
        for service in self._services:
            service.pause()

    def resume(self) -> None:
        for service in self._services:
            service.resume()
        if self._since_ns and self._services:
            self._paused_ns.append((self._since_ns, clock()))
        self._since_ns = 0

    def pauses(self) -> np.ndarray:
        """Return the finished pauses (ns, shape (pauses, 2))."""
        return np.array(self._paused_ns, dtype=np.int64).reshape(-1, 2)


@contextmanager
def _all_awake_afterwards(accounts: Collection[_Account]) -> Iterator[None]:
    try:
        for account in accounts:
            account.pause()
        yield
    finally:
        for account in accounts:
            account.resume()


def _resume(accounts: Mapping[str, _Account], turn: Turn, start_ns: int) -> int:
    """Resume the services of a turn; return how late that is for its window, in ns."""
    accounts[turn.treatment].resume()
    return max(0, clock() - start_ns - round(turn.start_s * 1e9))


def _sleep_until(instant_ns: int, is_over: Callable[[], bool]) -> bool:
    """Sleep until an instant; return False where the loads are over before it."""
    while (left_ns := instant_ns - clock()) > 0 and not is_over():
        time.sleep(min(left_ns / 1e9, LOOK_S))
    return not is_over()
