"""Context switches of every service: of its own accord, to wait, and against its will.

The kernel counts both for each thread in ``/proc/<pid>/task/<tid>/status`` (Linux, ``proc(5)``). A
thread that gives its core up to wait for something switches voluntarily; one whose core is taken
from it, because its turn is over or another comes first, does not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping

import pandas as pd

from perflab.sampling.meters import Meter, ProcessTable
from perflab.sampling.repeated import Repeated
from perflab.sampling.schedules import Account, ServiceAccount, Thread
from perflab.sampling.tcp_counters import read

# A thread costs some 20 us, and of what it counts nothing is lost between two looks.
INTERVAL_S = 1.0
COLUMNS = {"t_ns": "int64", "service": "string", "voluntary": "int64", "involuntary": "int64"}
_FIRST = "\nvoluntary_ctxt_switches:"


def switches_of(pids: Iterable[int]) -> dict[Thread, Account]:
    """Return (voluntary, involuntary) of every thread that is alive, by process and thread."""
    found = {}
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            # Voluntary: 12; nonvoluntary: 3, the last two lines.
            words = read(f"/proc/{pid}/task/{thread}/status").partition(_FIRST)[2].split()
            if len(words) >= 3:
                found[pid, int(thread)] = (int(words[0]), int(words[2]))
    return found


class SwitchSampler:
    """Reads the switches of services in a thread of its own between ``start`` and ``stop``.

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
            alive = switches_of(meter.members(table))
            if alive:
                self._rows.append((now, name, *self._accounts[name].add(alive)))

    def switches(self) -> pd.DataFrame:
        """Return t_ns, service, voluntary and involuntary (cumulative)."""
        frame = pd.DataFrame(self._rows, columns=list(COLUMNS))
        return frame.astype({name: kind for name, kind in COLUMNS.items() if kind != "string"})
