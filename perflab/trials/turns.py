"""Services take turns: who has the cores, for how long, and what each of them got."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import pandas as pd

from perflab.stacks.backend import Instance
from perflab.trials.designs import Rounds, Turn

POLL_EVERY_S = 0.25
# Requests may end in this share of a gap; in the rest one service is paused and another resumed.
ENDING_SHARE = 0.75


@dataclass(frozen=True)
class TurnsTaken:
    """All turns, and the pauses between them.

    ``table`` has a row per treatment and round, in the order of time: ``round``, ``treatment`` and
    ``late_ns``, how long after the begin of its window the last of the treatment's own services was
    resumed (0: before it). ``pauses`` has, by treatment, the begin and end of the times in which
    its own services were paused, or about to be paused or resumed (ns, shape (pauses, 2)).
    """

    table: pd.DataFrame
    pauses: Mapping[str, np.ndarray]


def take_turns(
    rounds: Rounds,
    services: Mapping[str, Sequence[Instance]],
    start_ns: int,
    is_over: Callable[[], bool] = lambda: False,
) -> TurnsTaken:
    """Pause the given services while it is not their turn; return when all turns are over.

    Without any, no turn can be late, and this returns at once. Late in the gap after a window its
    services are paused and the next are resumed: until then requests in flight can end. At the end
    all services are awake.

    ``services`` are by treatment those that are to be paused. ``start_ns`` is the planned start of
    the loads (CLOCK_MONOTONIC); ``is_over`` tells whether they have ended before their time.
    """
    turns = rounds.turns()
    if not any(services.values()):
        in_time = [(turn.round, turn.treatment, 0) for turn in turns]
        never = np.zeros((0, 2), dtype=np.int64)
        return TurnsTaken(_turn_table(in_time), dict.fromkeys(rounds.treatments, never))
    accounts = {name: _Account(services[name]) for name in rounds.treatments}
    taken: list[tuple[int, str, int]] = []
    with ExitStack() as awake_afterwards:
        for account in accounts.values():
            awake_afterwards.callback(account.resume)
            account.pause()
        ends_ns = round(rounds.gap_ms * 1e6 * ENDING_SHARE)
        late_ns = _resume(accounts, turns[0], start_ns)
        for turn, after in zip_longest(turns, turns[1:]):
            if not _sleep_until(start_ns + round(turn.end_s * 1e9) + ends_ns, is_over):
                break
            was_late_ns = late_ns
            account = accounts[turn.treatment]
            account.pause()
            late_ns = _resume(accounts, after, start_ns) if after else 0
            taken.append((turn.round, turn.treatment, was_late_ns))
    pauses = {name: account.pauses() for name, account in accounts.items()}
    return TurnsTaken(_turn_table(taken), pauses)


def _turn_table(taken: Sequence[tuple[int, str, int]]) -> pd.DataFrame:
    return pd.DataFrame(taken, columns=["round", "treatment", "late_ns"])


class _Account:
    """The services of a treatment that are paused, and when they were."""

    def __init__(self, services: Sequence[Instance]) -> None:
        self._services = services
        self._paused_ns: list[tuple[int, int]] = []
        # 0 while the services are awake.
        self._since_ns = 0

    def pause(self) -> None:
        self._since_ns = self._since_ns or time.monotonic_ns()
        for service in self._services:
            service.pause()

    def resume(self) -> None:
        for service in self._services:
            service.resume()
        if self._since_ns and self._services:
            self._paused_ns.append((self._since_ns, time.monotonic_ns()))
        self._since_ns = 0

    def pauses(self) -> np.ndarray:
        """Return the finished pauses (ns, shape (pauses, 2))."""
        return np.array(self._paused_ns, dtype=np.int64).reshape(-1, 2)


def _resume(accounts: Mapping[str, _Account], turn: Turn, start_ns: int) -> int:
    """Resume the services of a turn; return how late that is for its window, in ns."""
    accounts[turn.treatment].resume()
    return max(0, time.monotonic_ns() - start_ns - round(turn.start_s * 1e9))


def _sleep_until(instant_ns: int, is_over: Callable[[], bool]) -> bool:
    """Sleep until an instant; return False where the loads are over before it."""
    while (left_ns := instant_ns - time.monotonic_ns()) > 0 and not is_over():
        time.sleep(min(left_ns / 1e9, POLL_EVERY_S))
    return not is_over()
