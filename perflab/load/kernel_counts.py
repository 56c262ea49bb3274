"""What the kernel counted of TCP during a load, in words, and which of it this load waited for.

The counters (:mod:`perflab.sampling.tcp_counters`) are of a whole network namespace; the waits are
of the load's own connections.
"""

from __future__ import annotations

from collections.abc import Mapping

from perflab.load.result import LoadResult
from perflab.recordings.reasons import Remark

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
# The first retransmission of a SYN comes after 1 s (RFC 6298, section 2); a timer of the kernel's
# may be one tick early, which is 10 ms at most.
FIRST_RETRANSMISSION_NS = 980_000_000
WHOSE = "counted for the whole network namespace, other processes in it included"


def remarks(result: LoadResult) -> list[Remark]:
    """Return what the counters of a load say, each with what follows from it."""
    counted = result.kernel
    told = (
        ("host.tcp_backlog", BACKLOG, _backlog_meaning(counted, waited_for_syn(result))),
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


def waited_for_syn(result: LoadResult) -> int:
    """Return how many connections of the load itself took so long that their SYN was sent again."""
    return sum(
        int((rows["connect_ns"] >= FIRST_RETRANSMISSION_NS).sum()) for rows in result.chunks()
    )


def _backlog_meaning(counted: Mapping[str, int], waited: int) -> str:
    again = counted.get("tcp_syn_retransmits", 0)
    if not waited or not again:
        return (
            "a connection that a full backlog drops is tried again after a second; no connection "
            "of this load that was made waited so long"
        )
    connections = "1 connection" if waited == 1 else f"{waited} connections"
    waits = f"{connections} of this load waited 1 s or longer for a retransmitted SYN"
    if counted.get("tcp_listen_overflows") or counted.get("tcp_listen_drops"):
        return (
            f"{waits}: a server's backlog overflowed, and that wait is the backlog's and not that "
            "of the service's code"
        )
    return (
        f"{waits}, and no backlog of this network namespace overflowed: the SYNs were lost on "
        "their way, or at a server with a network of its own"
    )
