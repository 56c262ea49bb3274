"""What the machine counts that bears on a load: stolen time of the client's cores, and TCP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from perflab.sampling.meters import core_times
from perflab.sampling.tcp_counters import tcp_counts


@dataclass(frozen=True)
class MachineCounts:
    """What the machine counts that bears on a load, at an instant.

    ``steal_ns`` is the time that other guests of the machine took from the client's cores.
    """

    cores: tuple[int, ...]
    at_ns: int
    steal_ns: int
    kernel: Mapping[str, int]

    @classmethod
    def now(cls, cores: tuple[int, ...]) -> MachineCounts:
        """Read the counters."""
        times = core_times()
        stolen_ns = sum(times[core].steal_ns for core in set(cores) if core in times)
        return cls(cores, time.monotonic_ns(), stolen_ns, tcp_counts())

    def stolen_until(self, later: MachineCounts) -> float:
        """Return which share of the cores' time was stolen until then."""
        wall_ns = (later.at_ns - self.at_ns) * len(set(self.cores))
        return (later.steal_ns - self.steal_ns) / max(1, wall_ns)

    def counted_until(self, later: MachineCounts) -> dict[str, int]:
        """Return what the kernel counted of TCP until then, by column."""
        known = self.kernel.keys() & later.kernel.keys()
        return {name: later.kernel[name] - self.kernel[name] for name in sorted(known)}
