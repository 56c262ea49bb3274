"""What the kernel counted of TCP: connections that a full backlog dropped, and what was sent again.

The counters are those of a network namespace, with all processes in it: of a service with a network
of its own (a container without the host's) only the client's side is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perflab.recordings.reasons import Remark

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
BACKLOG = ("tcp_listen_overflows", "tcp_listen_drops", "tcp_syn_retransmits")
AGAIN = ("tcp_timeouts", "tcp_retransmits")
RESETS = ("tcp_resets_sent", "tcp_resets", "tcp_failed_connects")
WORDS = {
    "tcp_listen_overflows": "overflows of a listen backlog",
    "tcp_listen_drops": "connections dropped by a listening socket",
    "tcp_syn_retransmits": "SYNs sent again",
    "tcp_timeouts": "retransmission time-outs",
    "tcp_retransmits": "segments sent again",
    "tcp_resets_sent": "resets sent",
    "tcp_resets": "connections reset",
    "tcp_failed_connects": "failed connects",
}
WHOSE = "counted for the whole network namespace, other processes in it included"


def tcp_counts(net: Path = NET) -> dict[str, int]:
    """Return the counters so far, by column; what this kernel does not count is left out."""
    found: dict[str, int] = {}
    for name in ("netstat", "snmp"):
        try:
            lines = (net / name).read_text().splitlines()
        except OSError:
            continue
        # Two lines a protocol: names, and values in the same order.
        for names, values in zip(lines[::2], lines[1::2], strict=False):
            kind, *columns = names.split()
            for column, value in zip(columns, values.split()[1:], strict=False):
                wanted = COUNTERS.get(f"{kind.rstrip(':')} {column}")
                if wanted:
                    found[wanted] = int(value)
    return found


def remarks(counted: Mapping[str, int]) -> list[Remark]:
    """Return what the counters of a load say, each with what follows from it."""
    told = (
        ("host.tcp_backlog", BACKLOG,
         "a connection that a full backlog drops is tried again after a second: that wait is the "
         "backlog's and not that of the service's code"),
        ("host.tcp_retransmits", AGAIN,
         "what is sent again after a time-out comes at least 0.2 s late"),
        ("host.tcp_resets", RESETS, "connections were refused, or ended before their time"),
    )  # fmt: skip
    found = []
    for code, names, meaning in told:
        seen = [f"{counted[name]} {WORDS[name]}" for name in names if counted.get(name)]
        if seen:
            text = f"the kernel counted {', '.join(seen)} during the load ({WHOSE}): {meaning}"
            found.append(Remark(code=code, text=text))
    return found
