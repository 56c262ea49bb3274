"""Counts of the kernel: TCP, the scheduler's account of services, and their accept queues.

TCP counters cover a network namespace with all its processes: of a service with a network of its
own, they show the client's side only.

The scheduler keeps for each thread the nanoseconds on a core, and ready to run without one (Linux,
Documentation/scheduler/sched-stats.rst). Both are summed over threads: four threads that wait for
one core wait four seconds a second.

Accept queues are counted per listening socket, which the port assigns to a service. The kernel
reports them over netlink (``sock_diag(7)``), which names listening sockets only.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from perflab.host.meters import INTERVAL_S, Meter, ProcessTable, Repeated

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


def tcp_counts(net: Path = NET) -> dict[str, int]:
    """Return the counters so far, by column; counters that this kernel lacks are left out."""
    counts: dict[str, int] = {}
    for name in ("netstat", "snmp"):
        lines = read(f"{net}/{name}").splitlines()
        # Each protocol has two lines: names, and values in the same order.
        for names, values in zip(lines[::2], lines[1::2], strict=False):
            kind, *columns = names.split()
            for column, value in zip(columns, values.split()[1:], strict=False):
                if counter := COUNTERS.get(f"{kind.rstrip(':')} {column}"):
                    counts[counter] = int(value)
    return counts


# A sample opens a file per thread, and a stack has hundreds: 2% of a core at this rate.
ACCOUNT_INTERVAL_S = 0.25
COLUMNS = ["t_ns", "service", "run_ns", "delay_ns"]
Thread = tuple[int, int]
Account = tuple[int, int]


def accounts_of(pids: Iterable[int]) -> dict[Thread, Account]:
    """Return (run ns, delay ns) of every living thread, if the kernel keeps such accounts."""
    accounts = {}
    for pid in pids:
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                account = account_of(f"/proc/{pid}/task/{thread}")
                if account is not None:
                    accounts[pid, int(thread)] = account
    return accounts


def account_of(thread: str) -> Account | None:
    """Return the account in a thread's folder of ``/proc``; None where there is none."""
    words = read(f"{thread}/schedstat").split()
    # Without CONFIG_SCHED_INFO the file exists and holds zeros.
    return (int(words[0]), int(words[1])) if len(words) == 3 and set(words) != {"0"} else None


class ServiceAccount:
    """How long the threads of one service have run and waited; ended ones by their last reading."""

    def __init__(self) -> None:
        self._ended = (0, 0)
        self._alive: dict[Thread, Account] = {}

    def add(self, alive: Mapping[Thread, Account]) -> Account:
        """Add a reading and return the sums over all threads so far."""
        for thread, before in self._alive.items():
            # A smaller account under the same id belongs to another thread.
            if thread not in alive or alive[thread][0] < before[0]:
                self._ended = _sum([self._ended, before])
        self._alive = dict(alive)
        return _sum([self._ended, *alive.values()])


def _sum(accounts: Iterable[Account]) -> Account:
    run_ns, delay_ns = zip(*accounts, strict=True)
    return sum(run_ns), sum(delay_ns)


class AccountSampler(Repeated):
    """Samples the scheduler's accounts of services; ``meters``, by name, know their processes."""

    def __init__(self, meters: Mapping[str, Meter]) -> None:
        super().__init__(self._sample, ACCOUNT_INTERVAL_S, at_end=True)
        self._meters = meters
        self._accounts = {name: ServiceAccount() for name in meters}
        self._rows: list[tuple[int, str, int, int]] = []

    def _sample(self) -> None:
        table = ProcessTable()
        for name, meter in self._meters.items():
            now = time.monotonic_ns()
            alive = accounts_of(meter.members(table))
            if alive:
                self._rows.append((now, name, *self._accounts[name].add(alive)))

    def table(self) -> pd.DataFrame:
        """Return a row per sample and service, with the cumulative columns of ``COLUMNS``."""
        return pd.DataFrame(self._rows, columns=COLUMNS)


# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h; TCP_LISTEN of net/tcp_states.h.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST_DUMP, DONE, ERROR = 0x301, 3, 2
SKMEMINFO, LISTEN, DROPS = 7, 10, 8
_HEAD, _REQUEST, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBI"), struct.Struct("=HH")
_PORT_AT, _QUEUES_AT, _ATTRIBUTES_AT = 4, 56, 72
TIMEOUT_S = 0.5


class Listener(NamedTuple):
    """A listening socket: ``waiting`` connections to be accepted, at most ``backlog`` + 1.

    ``drops`` counts the connections it has dropped since it listens, mostly for lack of room.
    """

    port: int
    waiting: int
    backlog: int
    drops: int


def listeners() -> list[Listener]:
    """Return the IPv4 sockets that listen in this network namespace; none without an answer."""
    try:
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
        with socket.socket(socket.AF_NETLINK, kind, NETLINK_SOCK_DIAG) as netlink:
            netlink.settimeout(TIMEOUT_S)
            return list(_answers(netlink))
    except (OSError, AttributeError, struct.error):
        return []


def _answers(netlink: socket.socket) -> Iterator[Listener]:
    request = _REQUEST.pack(
        socket.AF_INET, socket.IPPROTO_TCP, 1 << (SKMEMINFO - 1), 0, 1 << LISTEN
    )
    body = request + bytes(48)
    netlink.send(_HEAD.pack(_HEAD.size + len(body), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0) + body)
    while True:
        datagram = netlink.recv(1 << 16)
        while datagram:
            length, kind, *_ = _HEAD.unpack_from(datagram)
            if kind == DONE:
                return
            if kind == ERROR:
                raise OSError("the kernel tells nothing of listening sockets")
            yield _listener(datagram[_HEAD.size : length])
            datagram = datagram[(length + 3) & ~3 :]


def _listener(message: bytes) -> Listener:
    (port,) = struct.unpack_from("!H", message, _PORT_AT)
    waiting, backlog = struct.unpack_from("=II", message, _QUEUES_AT)
    return Listener(port, waiting, backlog, _drops(message[_ATTRIBUTES_AT:]))


def _drops(attributes: bytes) -> int:
    while attributes:
        length, kind = _ATTRIBUTE.unpack_from(attributes)
        if kind == SKMEMINFO:
            (drops,) = struct.unpack_from("=I", attributes, _ATTRIBUTE.size + 4 * DROPS)
            return int(drops)
        attributes = attributes[(max(length, _ATTRIBUTE.size) + 3) & ~3 :]
    return 0


class QueueSampler(Repeated):
    """Samples the accept queues of services; ``ports`` are those they listen on, by name."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        super().__init__(self._sample, INTERVAL_S, at_end=True)
        self._services = {port: name for name, port in ports.items()}
        self._rows: list[tuple[int, str, int, int, int]] = []

    def _sample(self) -> None:
        now = time.monotonic_ns()
        self._rows += [
            (now, name, *listener[1:])
            for listener in listeners()
            if (name := self._services.get(listener.port))
        ]

    def table(self) -> pd.DataFrame:
        """Return t_ns, service, waiting, backlog, and drops (cumulative), a row per sample."""
        columns = ["t_ns", "service", "waiting", "backlog", "drops"]
        # Several sockets share a port where each worker process has its own.
        sockets = pd.DataFrame(self._rows, columns=columns).groupby(["t_ns", "service"], sort=False)
        return sockets.sum().reset_index()
