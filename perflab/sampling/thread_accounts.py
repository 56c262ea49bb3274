"""The scheduler's account of every service: time its threads ran, and waited for a core.

The kernel keeps both for each thread in ``/proc/<pid>/task/<tid>/schedstat``: nanoseconds on a
core, and ready to run without one (Linux, Documentation/scheduler/sched-stats.rst). Both are sums
over threads: four that wait for one core together wait four seconds a second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping

import pandas as pd

from perflab.sampling.meters import Meter, ProcessTable
from perflab.sampling.sampler import Repeated
from perflab.sampling.tcp_counters import read

# A look opens a file for every thread, of which a stack has hundreds: 2% of a core at this rate.
INTERVAL_S = 0.25
COLUMNS = ["t_ns", "service", "run_ns", "delay_ns"]
Thread = tuple[int, int]
Account = tuple[int, int]


def accounts_of(pids: Iterable[int]) -> dict[Thread, Account]:
    """Return (run ns, delay ns) of every thread that is alive, by process and thread.

    Empty where the kernel keeps no such account.
    """
    accounts = {}
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            account = account_of(f"/proc/{pid}/task/{thread}")
            if account is not None:
                accounts[pid, int(thread)] = account
    return accounts


def account_of(thread: str) -> Account | None:
    """Return the account in a thread's folder; None where there is none."""
    words = read(f"{thread}/schedstat").split()
    if len(words) != 3:
        return None
    run_ns, delay_ns, turns = map(int, words)
    # Without CONFIG_SCHED_INFO the file is there, and holds zeros.
    return (run_ns, delay_ns) if turns or run_ns else None


class ServiceAccount:
    """What the threads of one service have run and waited, cumulative.

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
    run_ns, delay_ns = zip(*accounts, strict=True)
    return sum(run_ns), sum(delay_ns)


class AccountSampler(Repeated):
    """Reads the accounts of services, by name, whose processes their meters know."""

    def __init__(self, meters: Mapping[str, Meter]) -> None:
        super().__init__(self._sample, INTERVAL_S, at_end=True)
        self._meters = meters
        self._accounts = {name: ServiceAccount() for name in meters}
        self._rows: list[tuple[int, str, int, int]] = []

    def _sample(self) -> None:
        table = ProcessTable()
        for name, meter in self._meters.items():
            now = time.monotonic_ns()
            alive = accounts_of(meter.members(table))
            if alive:
                self._rows.append((now, name, *self._accounts[name].add(alive)))

    def table(self) -> pd.DataFrame:
        """Return a row per look at each service, with the columns of ``COLUMNS``, cumulative."""
        return pd.DataFrame(self._rows, columns=COLUMNS)
