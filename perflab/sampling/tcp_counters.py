"""The kernel's counters of TCP: full backlogs, what was sent again, resets, and TIME_WAIT.

They are those of a network namespace, with all processes in it: of a service with a network of its
own (a container without the host's) only the client's side is seen.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

NET = Path("/proc/net")
# Linux, Documentation/networking/snmp_counter.rst; the column of a trial by the kernel's own name.
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
# Each file is read whole: none has so much.
MOST_BYTES = 1 << 16


def read(path: str) -> str:
    """Return a file of ``/proc`` with the fewest calls; empty where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, MOST_BYTES).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def tcp_counts(net: Path = NET) -> dict[str, int]:
    """Return the counters so far, by column; what this kernel does not count is left out."""
    counts: dict[str, int] = {}
    for name in ("netstat", "snmp"):
        lines = read(f"{net}/{name}").splitlines()
        # Two lines a protocol: names, and values in the same order.
        for names, values in zip(lines[::2], lines[1::2], strict=False):
            if places := _places(names):
                cells = values.split()
                counts |= {column: int(cells[place]) for place, column in places}
    return counts


@lru_cache(maxsize=32)
def _places(names: str) -> tuple[tuple[int, str], ...]:
    """Return where the wanted counters stand in a line; a kernel's names stay as they are."""
    kind, *columns = names.split()
    wanted = [COUNTERS.get(f"{kind.rstrip(':')} {column}") for column in columns]
    return tuple((place, column) for place, column in enumerate(wanted, 1) if column)


def sockets_in_time_wait(net: Path = NET) -> int:
    """Return the sockets of this network in TIME_WAIT; 0 where the kernel does not tell."""
    words = read(f"{net}/sockstat").split()
    return int(words[words.index("tw") + 1]) if "tw" in words else 0
