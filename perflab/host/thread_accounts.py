"""The scheduler's accounts of services.

It keeps for each thread the nanoseconds on a core, and ready to run without one (Linux,
Documentation/scheduler/sched-stats.rst). Both are summed over threads: four threads that wait for
one core wait four seconds a second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

import pandas as pd

from perflab.host.kernel_counts import read
from perflab.host.meters import Meter, ProcessTable, Repeated

# A sample opens a file per thread, and a stack has hundreds: 2% of a core at this rate.
ACCOUNT_INTERVAL_S = 0.25
ACCOUNT_COLUMNS = ["t_ns", "service", "run_ns", "delay_ns"]
Thread = tuple[int, int]
Account = tuple[int, int]


def accounts_of(pids: Iterable[int]) -> dict[Thread, Account]:
    """Return (run ns, delay ns) of every living thread, if the kernel keeps such accounts."""
    accounts = {}
    for pid in pids:
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                account = account_of(f"/proc/{pid}/task/{thread}")
                if account is not None:
                    accounts[pid, int(thread)] = account
    return accounts


def account_of(thread: str) -> Account | None:
    """Return the account in a thread's folder of ``/proc``; None where there is none."""
    words = read(f"{thread}/schedstat").split()
    # Without CONFIG_SCHED_INFO the file exists and holds zeros.
    return (int(words[0]), int(words[1])) if len(words) == 3 and set(words) != {"0"} else None


class ServiceAccount:
    """How long the threads of one service have run and waited; ended ones by their last reading."""

    def __init__(self) -> None:
        self._ended = (0, 0)
        self._alive: dict[Thread, Account] = {}

    def add(self, alive: Mapping[Thread, Account]) -> Account:
        """Add a reading and return the sums over all threads so far."""
        for thread, before in self._alive.items():
            # A smaller account under the same id belongs to another thread.
            if thread not in alive or alive[thread][0] < before[0]:
                self._ended = _sum([self._ended, before])
        self._alive = dict(alive)
        return _sum([self._ended, *alive.values()])


def _sum(accounts: Iterable[Account]) -> Account:
    run_ns, delay_ns = zip(*accounts, strict=True)
    return sum(run_ns), sum(delay_ns)


class AccountSampler(Repeated):
    """Samples the scheduler's accounts of services; ``meters``, by name, know their processes."""

    def __init__(self, meters: Mapping[str, Meter]) -> None:
        super().__init__(self._sample, ACCOUNT_INTERVAL_S, at_end=True)
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
        """Return a row per sample and service, cumulative in ``ACCOUNT_COLUMNS``."""
        return pd.DataFrame(self._rows, columns=ACCOUNT_COLUMNS)
