"""The kernel's part over time: TIME_WAIT and switches of the host, queues of the listeners."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pandas as pd

from perflab.sampling.listeners import Listeners
from perflab.sampling.repeated import Repeated
from perflab.sampling.sampler import INTERVAL_S
from perflab.sampling.tcp_counters import host_switches, sockets_in_time_wait

HOST = ["t_ns", "time_wait", "switches"]
QUEUES = ["t_ns", "service", "waiting", "backlog", "drops"]


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
        self._host: list[tuple[int, int, int]] = []
        self._queues: list[tuple[int, str, int, int, int]] = []
        repeated = Repeated(self._sample, INTERVAL_S, at_end=True)
        self.start, self._stop = repeated.start, repeated.stop

    def stop(self) -> None:
        """Take the last sample."""
        self._stop()
        self._listeners.close()

    def _sample(self) -> None:
        self._host.append((time.monotonic_ns(), sockets_in_time_wait(), host_switches()))
        now = time.monotonic_ns()
        # Several sockets share a port where each worker listens for itself.
        sums: dict[str, tuple[int, int, int]] = {}
        for each in self._listeners.read():
            if name := self._services.get(each.port):
                waiting, backlog, drops = sums.get(name, (0, 0, 0))
                sums[name] = (waiting + each.waiting, backlog + each.backlog, drops + each.drops)
        self._queues += [(now, name, *values) for name, values in sums.items()]

    def host(self) -> pd.DataFrame:
        """Return t_ns, time_wait (sockets in that state then) and switches (cumulative)."""
        return pd.DataFrame(self._host, columns=HOST)

    def queues(self) -> pd.DataFrame:
        """Return t_ns, service, waiting and backlog (then), and drops (cumulative)."""
        return pd.DataFrame(self._queues, columns=QUEUES)
