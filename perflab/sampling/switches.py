"""Context switches of every service: of its own accord, to wait, and against its will.

The kernel counts both for each thread in ``/proc/<pid>/task/<tid>/status`` (Linux, ``proc(5)``). A
thread that gives its core up to wait for something switches voluntarily; one whose core is taken
from it, because its turn is over or another comes first, does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perflab.sampling.meters import Meter
from perflab.sampling.tcp_counters import read
from perflab.sampling.thread_accounts import Account, AccountSampler, Thread, accounts_of_threads

# A thread costs some 20 us, and of what it counts nothing is lost between two looks.
INTERVAL_S = 1.0
COLUMNS = {"t_ns": "int64", "service": "string", "voluntary": "int64", "involuntary": "int64"}
_FIRST = "\nvoluntary_ctxt_switches:"


def switches_of(pids: Iterable[int]) -> dict[Thread, Account]:
    """Return (voluntary, involuntary) of every thread that is alive, by process and thread."""
    return accounts_of_threads(pids, _account)


def _account(thread: str) -> Account | None:
    # Voluntary: 12; nonvoluntary: 3, the last two lines.
    words = read(f"{thread}/status").partition(_FIRST)[2].split()
    return (int(words[0]), int(words[2])) if len(words) >= 3 else None


def switch_sampler(meters: Mapping[str, Meter]) -> AccountSampler:
    """Return a sampler of t_ns, service, voluntary and involuntary (cumulative)."""
    return AccountSampler(meters, _account, INTERVAL_S, COLUMNS)
