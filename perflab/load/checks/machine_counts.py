"""What the machine's TCP counters say of the time of a load."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from perflab.host.kernel_counts import tcp_counts
from perflab.host.meters import core_times
from perflab.load.records.result import LoadResult
from perflab.recordings.columns import TCP_COUNTERS
from perflab.recordings.schema import Remark

# The first retransmission of a SYN comes after 1 s (RFC 6298, section 2); the kernel's timer may be
# one tick early, which is at most 10 ms.
FIRST_RETRANSMISSION_NS = 980_000_000


@dataclass(frozen=True)
class MachineCounts:
    """The counters at one instant.

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

    def until(self, later: MachineCounts) -> tuple[float, dict[str, int]]:
        """Return the stolen share of the cores' time, and the kernel's TCP counts by column."""
        wall_ns = (later.at_ns - self.at_ns) * len(set(self.cores))
        known = self.kernel.keys() & later.kernel.keys()
        counts = {name: later.kernel[name] - self.kernel[name] for name in sorted(known)}
        return (later.steal_ns - self.steal_ns) / max(1, wall_ns), counts


def remarks_on_tcp(result: LoadResult) -> list[Remark]:
    """Return a remark on the kernel's TCP counts during a load, if there are any."""
    counts = [
        f"{result.kernel[name]} {words}"
        for name, words in TCP_COUNTERS.items()
        if result.kernel.get(name)
    ]
    if not counts:
        return []
    waited = result.count(lambda rows: rows["connect_ns"] >= FIRST_RETRANSMISSION_NS)
    text = (
        f"the kernel counted {', '.join(counts)} during the load, for the whole network namespace; "
        f"{waited} connections of this load waited 1 s or longer, until their SYN was sent again"
    )
    return [Remark(code="host.tcp", text=text)]
