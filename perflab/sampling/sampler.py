"""A thread that samples at a fixed rate, and the sampler of every service's CPU and memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from perflab.sampling.meters import Meter, ProcessTable, core_times, process_cpu_ns

INTERVAL_S = 0.05


class Repeated:
    """Does a job every ``interval_s`` until ``stop``; with ``at_end``, once more then.

    It does so in a thread of its own. Samplers derive from it; their instants are CLOCK_MONOTONIC,
    the clock of the requests, taken right before each reading.
    """

    def __init__(self, job: Callable[[], None], interval_s: float, *, at_end: bool = False) -> None:
        self._job = job
        self._at_end = at_end
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Let the job that is under way end."""
        self._ended.set()
        self._thread.join(timeout=10)
        if self._at_end:
            self._job()

    def _repeat(self) -> None:
        due = time.monotonic()
        while not self._ended.is_set():
            self._job()
            # Keep to the grid, and leave out what a slow job has missed.
            due = max(due + self._interval_s, time.monotonic())
            self._ended.wait(due - time.monotonic())


class Sampler(Repeated):
    """Samples CPU and memory of services, by name, and of the load's workers, as ``client``."""

    def __init__(self, meters: Mapping[str, Meter], client_pids: Sequence[int]) -> None:
        super().__init__(self._sample, INTERVAL_S, at_end=True)
        self._meters = meters
        self._client_pids = client_pids
        self._samples: list[tuple[int, str, int, int]] = []

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
