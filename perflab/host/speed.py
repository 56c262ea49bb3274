"""The CPU-speed probe: how long a fixed piece of arithmetic takes on one core, now."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable

LOOPS = 20_000
REPEATS = 5


def _work(loops: int) -> int:
    total = 0
    for number in range(loops):
        total = (total * 31 + number) & 0xFFFFFFFF
    return total


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
