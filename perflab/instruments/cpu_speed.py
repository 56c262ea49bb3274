"""How fast the services' core is right before and after a load, by a short piece of work."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable
from typing import ClassVar

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene

LOOPS = 20_000
REPEATS = 5


class CpuSpeed(Instrument):
    """Measures ``cpu_probe_before_ms`` and ``cpu_probe_after_ms``, once each.

    Comparisons are corrected for the one before where that is shown to help. The one after is told
    and nothing more: what a treatment does to the machine is in it.
    """

    shares_time: ClassVar = True

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _CpuSpeed(scene.placement.services)


class _CpuSpeed(Look):
    def __init__(self, cores: tuple[int, ...]) -> None:
        self._cores = cores
        self._probe_ms: dict[str, float] = {}

    def before(self) -> None:
        """Probe."""
        self._probe_ms["cpu_probe_before_ms"] = cpu_probe_ms(self._cores)

    def after(self) -> None:
        """Probe again."""
        self._probe_ms["cpu_probe_after_ms"] = cpu_probe_ms(self._cores)

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return both."""
        return Observation({**self._probe_ms})


def cpu_probe_ms(cores: Iterable[int]) -> float:
    """Return the median wall time, in ms, of the fixed work on the given cores.

    The calling thread is bound to the cores while it runs and set back afterwards. Services on
    these cores must be idle: the probe measures the machine, not the contention.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cores))
    try:
        return statistics.median(_timed_ms() for _ in range(REPEATS))
    finally:
        os.sched_setaffinity(0, before)


def _timed_ms() -> float:
    begin = time.perf_counter_ns()
    _work(LOOPS)
    return (time.perf_counter_ns() - begin) / 1e6


def _work(loops: int) -> int:
    total = 0
    for number in range(loops):
        total = (total * 31 + number) & 0xFFFFFFFF
    return total
