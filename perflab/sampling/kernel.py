"""The kernel's part over time: TCP of the host, and the queues of the services' own listeners."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pandas as pd

from perflab.sampling.listeners import Listeners
from perflab.sampling.repeated import Repeated
from perflab.sampling.sampler import INTERVAL_S
from perflab.sampling.tcp_counters import (
    COUNTERS,
    host_switches,
    sockets_in_time_wait,
    tcp_counts,
)

# Cumulative, but for ``time_wait``, the sockets in that state at the instant.
HOST = {
    "t_ns": "int64", "time_wait": "int64", "switches": "int64",
    **dict.fromkeys(COUNTERS.values(), "int64"),
}  # fmt: skip
# ``drops`` is cumulative; ``waiting`` and ``backlog`` are as they are at the instant.
QUEUES = {
    "t_ns": "int64", "service": "string", "waiting": "int64", "backlog": "int64", "drops": "int64"
}  # fmt: skip


class KernelSampler:
    """Samples in a thread of its own between ``start`` and ``stop``.

    Instants are CLOCK_MONOTONIC, the clock of the requests, taken right before each reading. What
    this kernel does not count stays 0.

    Parameters
    ----------
    ports : mapping
        Service name to the port that it listens on.
    """

    def __init__(self, ports: Mapping[str, int]) -> None:
        self._services = {port: name for name, port in ports.items()}
        self._listeners = Listeners()
        self._host: list[dict[str, int]] = []
        self._queues: list[tuple[int, str, int, int, int]] = []
        repeated = Repeated(self._sample, INTERVAL_S, at_end=True)
        self.start, self._stop = repeated.start, repeated.stop

    def stop(self) -> None:
        """Take the last sample."""
        self._stop()
        self._listeners.close()

    def _sample(self) -> None:
        now = time.monotonic_ns()
        counted = {"time_wait": sockets_in_time_wait(), "switches": host_switches()}
        self._host.append({"t_ns": now, **counted, **tcp_counts()})
        now = time.monotonic_ns()
        # Several sockets share a port where each worker listens for itself.
        sums: dict[str, tuple[int, int, int]] = {}
        for each in self._listeners.read():
            if name := self._services.get(each.port):
                waiting, backlog, drops = sums.get(name, (0, 0, 0))
                sums[name] = (waiting + each.waiting, backlog + each.backlog, drops + each.drops)
        self._queues += [(now, name, *values) for name, values in sums.items()]

    def host(self) -> pd.DataFrame:
        """Return the host's counters, with the columns of ``HOST``."""
        frame = pd.DataFrame(self._host, columns=list(HOST))
        return frame.fillna(0).astype(HOST)

    def queues(self) -> pd.DataFrame:
        """Return the services' accept queues, with the columns of ``QUEUES``."""
        frame = pd.DataFrame(self._queues, columns=list(QUEUES))
        return frame.astype({name: kind for name, kind in QUEUES.items() if kind != "string"})
