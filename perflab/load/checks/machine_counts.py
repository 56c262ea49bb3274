"""Counters of the machine that bear on a load: stolen time of the client's cores, and TCP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from perflab.host.kernel_counts import tcp_counts
from perflab.host.meters import core_times
from perflab.load.records.result import LoadResult
from perflab.recordings.columns import TCP_COUNTERS
from perflab.recordings.schema import Remark

BACKLOG = ("tcp_listen_overflows", "tcp_listen_drops", "tcp_syn_retransmits")
AGAIN = ("tcp_timeouts", "tcp_retransmits")
RESETS = ("tcp_resets_sent", "tcp_resets", "tcp_failed_connects")
# The first retransmission of a SYN comes after 1 s (RFC 6298, section 2); the kernel's timer may be
# one tick early, which is at most 10 ms.
FIRST_RETRANSMISSION_NS = 980_000_000
WHOSE = "counted for the whole network namespace, other processes in it included"


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

    def stolen_until(self, later: MachineCounts) -> float:
        """Return the share of the cores' time that was stolen until ``later``."""
        wall_ns = (later.at_ns - self.at_ns) * len(set(self.cores))
        return (later.steal_ns - self.steal_ns) / max(1, wall_ns)

    def counted_until(self, later: MachineCounts) -> dict[str, int]:
        """Return the kernel's TCP counts until ``later``, by column."""
        known = self.kernel.keys() & later.kernel.keys()
        return {name: later.kernel[name] - self.kernel[name] for name in sorted(known)}


def remarks_on_tcp(result: LoadResult) -> list[Remark]:
    """Return remarks on the TCP counters of a load, each with its meaning."""
    counted = result.kernel
    kinds = (
        ("host.tcp_backlog", BACKLOG, _backlog_meaning(waited_for_syn(result))),
        ("host.tcp_retransmits", AGAIN,
         "what is sent again after a time-out comes at least 0.2 s late"),
        ("host.tcp_resets", RESETS, "connections were refused, or ended before their time"),
    )  # fmt: skip
    remarks = []
    for code, names, meaning in kinds:
        counts = [f"{counted[name]} {TCP_COUNTERS[name]}" for name in names if counted.get(name)]
        if counts:
            text = f"the kernel counted {', '.join(counts)} during the load ({WHOSE}): {meaning}"
            remarks.append(Remark(code=code, text=text))
    return remarks


def waited_for_syn(result: LoadResult) -> int:
    """Return how many of the load's connections took so long that their SYN was sent again."""
    return sum(
        int((rows["connect_ns"] >= FIRST_RETRANSMISSION_NS).sum()) for rows in result.chunks()
    )


def _backlog_meaning(waited: int) -> str:
    return (
        "the kernel tries a connection that a full backlog dropped again after a second; "
        f"{waited} connections of this load waited 1 s or longer, which is no time of the service"
    )
