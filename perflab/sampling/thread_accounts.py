"""Counts that the kernel keeps of each thread, added up over all that a service ever had.

**Time** of the scheduler (``/proc/<pid>/task/<tid>/schedstat``): nanoseconds on a core, and ready
to run without one. Both are sums: four threads that wait for one core together wait four seconds a
second. Source: Linux, Documentation/scheduler/sched-stats.rst.

**Context switches** (``status`` beside it): a thread that gives its core up to wait for something
switches voluntarily; one whose core is taken from it does not. Source: proc(5).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from perflab.sampling.meters import Meter, ProcessTable
from perflab.sampling.repeated import Repeated
from perflab.sampling.tcp_counters import read

Thread = tuple[int, int]
Account = tuple[int, int]
# What a thread's folder in /proc tells of it; None where the kernel does not.
ReadThread = Callable[[str], Account | None]
# A look opens a file for every thread, of which a stack has hundreds: 2% of a core at this rate.
TIMES_EVERY_S = 0.25
# This file costs some 20 us a thread, and of what it counts nothing is lost between two looks.
SWITCHES_EVERY_S = 1.0
_FIRST = "\nvoluntary_ctxt_switches:"


def times_of(thread: str) -> Account | None:
    """Return the ns that a thread ran, and that it waited for a core."""
    words = read(f"{thread}/schedstat").split()
    if len(words) != 3:
        return None
    run_ns, delay_ns, turns = map(int, words)
    # Without CONFIG_SCHED_INFO the file is there, and holds zeros.
    return (run_ns, delay_ns) if turns or run_ns else None


def switches_of(thread: str) -> Account | None:
    """Return how often a thread switched voluntarily, and against its will."""
    # Voluntary: 12; nonvoluntary: 3, the last two lines.
    words = read(f"{thread}/status").partition(_FIRST)[2].split()
    return (int(words[0]), int(words[2])) if len(words) >= 3 else None


def accounts_of(pids: Iterable[int], read_thread: ReadThread) -> dict[Thread, Account]:
    """Return the account of every thread that is alive, by process and thread.

    Parameters
    ----------
    pids : iterable of int
        Processes; those that are gone are left out.
    read_thread : callable
        :func:`times_of` or :func:`switches_of`.
    """
    found = {}
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            account = read_thread(f"/proc/{pid}/task/{thread}")
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
    read_thread : callable
        :func:`times_of` or :func:`switches_of`.
    interval_s : float
        Seconds between two looks.
    counts : (str, str)
        What both counts are called.
    """

    def __init__(
        self,
        meters: Mapping[str, Meter],
        read_thread: ReadThread,
        interval_s: float,
        counts: tuple[str, str],
    ) -> None:
        self._meters = meters
        self._read_thread = read_thread
        self._counts = counts
        self._accounts = {name: ServiceAccount() for name in meters}
        self._rows: list[tuple[int, str, int, int]] = []
        repeated = Repeated(self._sample, interval_s, at_end=True)
        self.start, self.stop = repeated.start, repeated.stop

    def _sample(self) -> None:
        table = ProcessTable()
        for name, meter in self._meters.items():
            now = time.monotonic_ns()
            alive = accounts_of(meter.members(table), self._read_thread)
            if alive:
                self._rows.append((now, name, *self._accounts[name].add(alive)))

    def table(self) -> pd.DataFrame:
        """Return a row per look at each service: t_ns, service, and both counts, cumulative."""
        return pd.DataFrame(self._rows, columns=["t_ns", "service", *self._counts])
