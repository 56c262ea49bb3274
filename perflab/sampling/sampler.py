"""The sampler: CPU and memory of every service at a fixed rate."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

import pandas as pd

from perflab.sampling.meters import Meter, ProcessTable, core_times, process_cpu_ns
from perflab.sampling.repeated import Repeated

INTERVAL_S = 0.05


class Sampler:
    """Samples in a thread of its own between ``start`` and ``stop``.

    Instants are CLOCK_MONOTONIC, the clock of the requests, taken right before each reading.

    Parameters
    ----------
    meters : mapping
        Service name to its meter.
    client_pids : sequence of int
        The load workers, sampled as ``client``.
    """

    def __init__(
        self,
        meters: Mapping[str, Meter],
        client_pids: Sequence[int],
    ) -> None:
        self._meters = meters
        self._client_pids = client_pids
        self._samples: list[tuple[int, str, int, int]] = []
        repeated = Repeated(self._sample, INTERVAL_S, at_end=True)
        self.start, self.stop = repeated.start, repeated.stop

    def _sample(self) -> None:
        table = ProcessTable()
        for name, meter in self._meters.items():
            now = time.monotonic_ns()
            reading = meter.read(table)
            if reading is not None:
                self._samples.append((now, name, reading.cpu_ns, reading.memory_bytes))
        self._sample_own("client", self._client_pids)
        self._sample_own("lab", [os.getpid()])
        now = time.monotonic_ns()
        for core, times in core_times().items():
            self._samples.append((now, f"core {core}", times.busy_ns, 0))

    def _sample_own(self, name: str, pids: Sequence[int]) -> None:
        now = time.monotonic_ns()
        try:
            self._samples.append((now, name, sum(process_cpu_ns(pid) for pid in pids), 0))
        except OSError:
            return

    def samples(self) -> pd.DataFrame:
        """Return t_ns, service, cpu_ns (cumulative) and memory_bytes."""
        frame = pd.DataFrame(self._samples, columns=["t_ns", "service", "cpu_ns", "memory_bytes"])
        return frame.astype({"t_ns": "int64", "cpu_ns": "int64", "memory_bytes": "int64"})
