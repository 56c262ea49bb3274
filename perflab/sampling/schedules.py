"""The scheduler's own accounts of every service: time its threads ran, and waited for a core.

The kernel keeps both for each thread in ``/proc/<pid>/task/<tid>/schedstat``: nanoseconds on a
core, nanoseconds ready to run without one, and how often it ran (Linux,
Documentation/scheduler/sched-stats.rst). Both are sums over threads: four that wait for one core
together wait four seconds a second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping

import pandas as pd

from perflab.sampling.meters import Meter, ProcessTable
from perflab.sampling.repeated import Repeated

# A look opens a file for every thread, of which a stack has hundreds: 2% of a core at this rate.
INTERVAL_S = 0.25
COLUMNS = {"t_ns": "int64", "service": "string", "run_ns": "int64", "delay_ns": "int64"}
Thread = tuple[int, int]
Account = tuple[int, int]


def accounts_of(pids: Iterable[int]) -> dict[Thread, Account]:
    """Return (run ns, delay ns) of every thread that is alive, by process and thread.

    Empty where the kernel keeps no such account.
    """
    found = {}
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            account = _account(f"/proc/{pid}/task/{thread}/schedstat")
            if account is not None:
                found[pid, int(thread)] = account
    return found


def _account(path: str) -> Account | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        run_ns, delay_ns, turns = map(int, os.read(descriptor, 100).split())
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    # Without CONFIG_SCHED_INFO the file is there, and holds zeros.
    return (run_ns, delay_ns) if turns or run_ns else None


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


class ScheduleSampler:
    """Reads the accounts of services in a thread of its own between ``start`` and ``stop``.

    Instants are CLOCK_MONOTONIC, the clock of the requests.
    """

    def __init__(self, meters: Mapping[str, Meter]) -> None:
        self._meters = meters
        self._accounts = {name: ServiceAccount() for name in meters}
        self._rows: list[tuple[int, str, int, int]] = []
        repeated = Repeated(self._sample, INTERVAL_S, at_end=True)
        self.start, self.stop = repeated.start, repeated.stop

    def _sample(self) -> None:
        table = ProcessTable()
        for name, meter in self._meters.items():
            now = time.monotonic_ns()
            alive = accounts_of(meter.members(table))
            if alive:
                self._rows.append((now, name, *self._accounts[name].add(alive)))

    def accounts(self) -> pd.DataFrame:
        """Return t_ns, service, run_ns and delay_ns (cumulative)."""
        frame = pd.DataFrame(self._rows, columns=list(COLUMNS))
        return frame.astype({name: kind for name, kind in COLUMNS.items() if kind != "string"})
