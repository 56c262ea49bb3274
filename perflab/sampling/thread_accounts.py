"""Two counts that the kernel keeps of each thread, added up over all that a service ever had."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from perflab.sampling.meters import Meter, ProcessTable
from perflab.sampling.repeated import Repeated

Thread = tuple[int, int]
Account = tuple[int, int]
# What a thread's folder in /proc tells of it; None where the kernel does not.
ReadThread = Callable[[str], Account | None]


def accounts_of_threads(pids: Iterable[int], read: ReadThread) -> dict[Thread, Account]:
    """Return the account of every thread that is alive, by process and thread.

    Parameters
    ----------
    pids : iterable of int
        Processes; those that are gone are left out.
    read : callable
        Returns the account of ``/proc/<pid>/task/<tid>``; None where there is none.
    """
    found = {}
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            account = read(f"/proc/{pid}/task/{thread}")
            if account is not None:
                found[pid, int(thread)] = account
    return found


class ServiceAccount:
    """What the threads of one service have run and waited, or how often they switched, cumulative.

    A thread that has ended keeps what was read of it last: the rest of it is in no file.
    """

    def __init__(self) -> None:
        self._ended = (0, 0)
        self._alive: dict[Thread, Account] = {}

    def add(self, alive: Mapping[Thread, Account]) -> Account:
        """Take a reading in and return the sums over all threads that were ever read."""
        for thread, before in self._alive.items():
            # A smaller account under the same number is another thread's.
            if thread not in alive or alive[thread][0] < before[0]:
                self._ended = _sum([self._ended, before])
        self._alive = dict(alive)
        return _sum([self._ended, *alive.values()])


def _sum(accounts: Iterable[Account]) -> Account:
    first = second = 0
    for one, other in accounts:
        first, second = first + one, second + other
    return first, second


class AccountSampler:
    """Reads the accounts of services in a thread of its own between ``start`` and ``stop``.

    Instants are CLOCK_MONOTONIC, the clock of the requests.

    Parameters
    ----------
    meters : mapping
        Service name to its meter, which knows the service's processes.
    read : callable
        What is read of each thread.
    interval_s : float
        Seconds between two looks.
    columns : mapping
        Names and kinds of the table's columns: instant, service, and the two counts.
    """

    def __init__(
        self,
        meters: Mapping[str, Meter],
        read: ReadThread,
        interval_s: float,
        columns: Mapping[str, str],
    ) -> None:
        self._meters = meters
        self._read = read
        self._columns = columns
        self._accounts = {name: ServiceAccount() for name in meters}
        self._rows: list[tuple[int, str, int, int]] = []
        repeated = Repeated(self._sample, interval_s, at_end=True)
        self.start, self.stop = repeated.start, repeated.stop

    def _sample(self) -> None:
        table = ProcessTable()
        for name, meter in self._meters.items():
            now = time.monotonic_ns()
            alive = accounts_of_threads(meter.members(table), self._read)
            if alive:
                self._rows.append((now, name, *self._accounts[name].add(alive)))

    def table(self) -> pd.DataFrame:
        """Return a row per look at each service: t_ns, service, and both counts, cumulative."""
        frame = pd.DataFrame(self._rows, columns=list(self._columns))
        numbers = {name: kind for name, kind in self._columns.items() if kind != "string"}
        return frame.astype(numbers)
