"""Counts of the kernel's TCP.

They cover a network namespace with all its processes: of a service with a network of its own, they
show the client's side only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

NET = Path("/proc/net")
# The kernel's name of a counter to a trial's column. Source: Linux,
# Documentation/networking/snmp_counter.rst.
COUNTERS = {
    "TcpExt ListenOverflows": "tcp_listen_overflows",
    "TcpExt ListenDrops": "tcp_listen_drops",
    "TcpExt TCPSynRetrans": "tcp_syn_retransmits",
    "TcpExt TCPTimeouts": "tcp_timeouts",
    "Tcp RetransSegs": "tcp_retransmits",
    "Tcp OutRsts": "tcp_resets_sent",
    "Tcp EstabResets": "tcp_resets",
    "Tcp AttemptFails": "tcp_failed_connects",
}
# No file of these is longer, so one read gets it whole.
MOST_BYTES = 1 << 16


def read(path: str) -> str:
    """Return the text of a file of ``/proc``, with the fewest calls; empty where there is none."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, MOST_BYTES).decode("ascii", "replace")
        finally:
            os.close(descriptor)
    return ""


def tcp_counts(net: Path = NET, counters: Mapping[str, str] = COUNTERS) -> dict[str, int]:
    """Return the counters so far, by column; counters that this kernel lacks are left out."""
    counts: dict[str, int] = {}
    for name in ("netstat", "snmp"):
        lines = read(f"{net}/{name}").splitlines()
        # Each protocol has two lines: names, and values in the same order.
        for names, values in zip(lines[::2], lines[1::2], strict=False):
            kind, *columns = names.split()
            for column, value in zip(columns, values.split()[1:], strict=False):
                if counter := counters.get(f"{kind.rstrip(':')} {column}"):
                    counts[counter] = int(value)
    return counts
