"""The sampler: CPU and memory of every service, and PostgreSQL's waits, at a fixed rate."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from perflab.errors import StackError
from perflab.sampling.meters import Meter, ProcessTable, core_times, process_cpu_ns

INTERVAL_S = 0.05
WAITS_INTERVAL_S = 0.1
Wait = tuple[str, str, str, int]


class Sampler:
    """Samples in threads of its own between ``start`` and ``stop``.

    Instants are CLOCK_MONOTONIC, the clock of the requests, taken right before each reading.

    Parameters
    ----------
    meters : mapping
        Service name to its meter.
    client_pids : sequence of int
        The load workers, sampled as ``client``.
    waits : callable, optional
        Returns the wait events of the database's backends.
    """

    def __init__(
        self,
        meters: Mapping[str, Meter],
        client_pids: Sequence[int],
        waits: Callable[[], list[Wait]] | None = None,
    ) -> None:
        self._meters = meters
        self._client_pids = client_pids
        self._waits = waits
        self._samples: list[tuple[int, str, int, int]] = []
        self._wait_rows: list[tuple[int, str, str, str, int]] = []
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to sample."""
        jobs = [(self._sample, INTERVAL_S)]
        if self._waits is not None:
            jobs.append((self._sample_waits, WAITS_INTERVAL_S))
        for job, interval_s in jobs:
            thread = threading.Thread(target=self._repeat, args=(job, interval_s), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Take a last sample and end."""
        self._ended.set()
        for thread in self._threads:
            thread.join(timeout=10)
        self._sample()

    def _repeat(self, job: Callable[[], None], interval_s: float) -> None:
        due = time.monotonic()
        while not self._ended.is_set():
            job()
            # Keep to the grid, and leave out what a slow reading has missed.
            due = max(due + interval_s, time.monotonic())
            self._ended.wait(due - time.monotonic())

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

    def _sample_waits(self) -> None:
        assert self._waits is not None
        now = time.monotonic_ns()
        try:
            self._wait_rows.extend((now, *row) for row in self._waits())
        except StackError:
            # The trial's own check tells of a dead database, with its log.
            self._ended.wait(WAITS_INTERVAL_S)

    def samples(self) -> pd.DataFrame:
        """Return t_ns, service, cpu_ns (cumulative) and memory_bytes."""
        frame = pd.DataFrame(self._samples, columns=["t_ns", "service", "cpu_ns", "memory_bytes"])
        return frame.astype({"t_ns": "int64", "cpu_ns": "int64", "memory_bytes": "int64"})

    def waits(self) -> pd.DataFrame | None:
        """Return t_ns, state, wait_event_type, wait_event and count; None without a database."""
        if self._waits is None:
            return None
        columns = ["t_ns", "state", "wait_event_type", "wait_event", "count"]
        frame = pd.DataFrame(self._wait_rows, columns=columns)
        return frame.astype({"t_ns": "int64", "count": "int32"})
