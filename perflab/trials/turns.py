"""Services that take turns: resumed and paused by the clock that their loads go by."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import zip_longest

import numpy as np
import pandas as pd

from perflab.stacks.backend import Instance
from perflab.trials.designs import Rounds, Turn

clock = time.monotonic_ns
LOOK_S = 0.25
# Of a gap; in the rest of it one service is paused and another resumed.
ENDING_SHARE = 0.75


@dataclass(frozen=True)
class Taken:
    """What became of a treatment's turn.

    ``late_ns`` is how long after the begin of its window the last of its own services was resumed
    (0: before it).
    """

    round: int
    treatment: str
    late_ns: int


@dataclass(frozen=True)
class TurnsTaken:
    """What became of all turns.

    Attributes
    ----------
    table : DataFrame
        A row per treatment and round, with the columns of :class:`Taken`, in the order of time. A
        turn that came late by more than is discarded of its window is to be left out.
    pauses : mapping
        Treatment to the times in which its own services were paused, or about to be paused or
        resumed, each from a begin to an end (ns, shape (pauses, 2)); none where it has no services
        of its own.
    """

    table: pd.DataFrame
    pauses: Mapping[str, np.ndarray]


def take_turns(
    rounds: Rounds,
    services: Mapping[str, Sequence[Instance]],
    start_ns: int,
    is_over: Callable[[], bool] = lambda: False,
) -> TurnsTaken:
    """Keep the services of one treatment awake at a time, those whose turn it is; return when over.

    Late in the gap after a window its services are paused and the next are resumed: until then
    what was under way can end. Afterwards all are awake.

    Parameters
    ----------
    services : mapping
        Treatment to the services that it alone has. What several share is never paused.
    start_ns : int
        The planned start of the loads (CLOCK_MONOTONIC).
    is_over : callable
        Asked before and while a turn is waited for: whether the loads have ended before their time.
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
    told = pd.DataFrame(taken, columns=[each.name for each in fields(Taken)])
    return TurnsTaken(told, {name: each.pauses() for name, each in accounts.items()})


class _Account:
    """A treatment's own services, and when they were paused."""

    def __init__(self, services: Sequence[Instance]) -> None:
        self._services = services
        self._paused_ns: list[tuple[int, int]] = []
        self._pausing_ns = 0
        self.paused = False

    def pause(self) -> None:
        if not self.paused:
            self._pausing_ns = clock()
        for each in self._services:
            each.pause()
        self.paused = True

    def resume(self) -> None:
        for each in self._services:
            each.resume()
        if self.paused:
            self._paused_ns.append((self._pausing_ns, clock()))
        self.paused = False

    def pauses(self) -> np.ndarray:
        """Return the pauses that are over, ns, shape (pauses, 2)."""
        own = self._paused_ns if self._services else []
        return np.array(own, dtype=np.int64).reshape(-1, 2)


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
    """Resume whose turn it is; return how late that is for its window, in ns."""
    accounts[turn.treatment].resume()
    return max(0, clock() - start_ns - round(turn.start_s * 1e9))


def _sleep_until(instant_ns: int, is_over: Callable[[], bool]) -> bool:
    """Return whether an instant has come; False where all is over before."""
    while (left_ns := instant_ns - clock()) > 0 and not is_over():
        time.sleep(min(left_ns / 1e9, LOOK_S))
    return not is_over()
