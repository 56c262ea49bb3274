"""The scheduler's own accounts of every service: time its threads ran, and waited for a core.

The kernel keeps both for each thread in ``/proc/<pid>/task/<tid>/schedstat``: nanoseconds on a
core, nanoseconds ready to run without one, and how often it ran (Linux,
Documentation/scheduler/sched-stats.rst). Both are sums over threads: four that wait for one core
together wait four seconds a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from perflab.sampling.meters import Meter
from perflab.sampling.thread_accounts import Account, AccountSampler, Thread, accounts_of_threads

# A look opens a file for every thread, of which a stack has hundreds: 2% of a core at this rate.
INTERVAL_S = 0.25
COLUMNS = {"t_ns": "int64", "service": "string", "run_ns": "int64", "delay_ns": "int64"}


def accounts_of(pids: Iterable[int]) -> dict[Thread, Account]:
    """Return (run ns, delay ns) of every thread that is alive, by process and thread.

    Empty where the kernel keeps no such account.
    """
    return accounts_of_threads(pids, _account)


def _account(thread: str) -> Account | None:
    try:
        descriptor = os.open(f"{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
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


def schedule_sampler(meters: Mapping[str, Meter]) -> AccountSampler:
    """Return a sampler of t_ns, service, run_ns and delay_ns (cumulative)."""
    return AccountSampler(meters, _account, INTERVAL_S, COLUMNS)
