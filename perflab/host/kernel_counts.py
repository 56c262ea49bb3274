"""Listening TCP sockets as the kernel accounts for each: who waits in its queue, what it dropped.

Unlike the counters of ``/proc/net``, which are those of all processes, these are of one socket: by
its port it is known whose. They are asked for over netlink (Linux, ``sock_diag(7)``), which names
listening sockets alone, however many connections there are.

The scheduler's account of every service: time its threads ran, and waited for a core.

The kernel keeps both for each thread in ``/proc/<pid>/task/<tid>/schedstat``: nanoseconds on a
core, and ready to run without one (Linux, Documentation/scheduler/sched-stats.rst). Both are sums
over threads: four that wait for one core together wait four seconds a second.

The kernel's counters of TCP: full backlogs, what was sent again, resets, and TIME_WAIT.

They are those of a network namespace, with all processes in it: of a service with a network of its
own (a container without the host's) only the client's side is seen.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd

from perflab.host.meters import INTERVAL_S, Meter, ProcessTable, Repeated

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


# A look opens a file for every thread, of which a stack has hundreds: 2% of a core at this rate.
ACCOUNT_INTERVAL_S = 0.25
COLUMNS = ["t_ns", "service", "run_ns", "delay_ns"]
Thread = tuple[int, int]
Account = tuple[int, int]


def accounts_of(pids: Iterable[int]) -> dict[Thread, Account]:
    """Return (run ns, delay ns) of every thread that is alive, by process and thread.

    Empty where the kernel keeps no such account.
    """
    accounts = {}
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            account = account_of(f"/proc/{pid}/task/{thread}")
            if account is not None:
                accounts[pid, int(thread)] = account
    return accounts


def account_of(thread: str) -> Account | None:
    """Return the account in a thread's folder; None where there is none."""
    words = read(f"{thread}/schedstat").split()
    if len(words) != 3:
        return None
    run_ns, delay_ns, turns = map(int, words)
    # Without CONFIG_SCHED_INFO the file is there, and holds zeros.
    return (run_ns, delay_ns) if turns or run_ns else None


class ServiceAccount:
    """What the threads of one service have run and waited, cumulative.

    A thread that has ended keeps what was read of it last: the rest of it is in no file.
    """

    def __init__(self) -> None:
        self._ended = (0, 0)
        self._alive: dict[Thread, Account] = {}

    def add(self, alive: Mapping[Thread, Account]) -> Account:
        """Take a reading in and return the sums over all threads that were ever read."""
        for thread, before in self._alive.items():
            # A smaller account under the same number is another thread's.
            if thread not in alive or alive[thread][0] < before[0]:
                self._ended = _sum([self._ended, before])
        self._alive = dict(alive)
        return _sum([self._ended, *alive.values()])


def _sum(accounts: Iterable[Account]) -> Account:
    run_ns, delay_ns = zip(*accounts, strict=True)
    return sum(run_ns), sum(delay_ns)


class AccountSampler(Repeated):
    """Reads the accounts of services, by name, whose processes their meters know."""

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
        """Return a row per look at each service, with the columns of ``COLUMNS``, cumulative."""
        return pd.DataFrame(self._rows, columns=COLUMNS)


# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h; TCP_LISTEN of net/tcp_states.h.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST_DUMP, DONE, ERROR = 0x301, 3, 2
SKMEMINFO, LISTEN, DROPS = 7, 10, 8
_HEAD, _ASKED, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBI"), struct.Struct("=HH")
_PORT_AT, _QUEUES_AT, _ATTRIBUTES_AT = 4, 56, 72
TIMEOUT_S = 0.5


@dataclass(frozen=True)
class Listener:
    """Listening on a port: connections ``waiting`` to be accepted, at most ``backlog`` + 1.

    ``drops`` counts what was dropped there since the socket listens, for want of room above all.
    """

    port: int
    waiting: int
    backlog: int
    drops: int


def listeners() -> list[Listener]:
    """Return the IPv4 sockets that listen in this network namespace.

    There are none where this kernel does not answer.
    """
    try:
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
        with socket.socket(socket.AF_NETLINK, kind, NETLINK_SOCK_DIAG) as netlink:
            netlink.settimeout(TIMEOUT_S)
            return list(_answers(netlink))
    except (OSError, AttributeError, struct.error):
        return []


def _answers(netlink: socket.socket) -> Iterator[Listener]:
    asked = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 1 << (SKMEMINFO - 1), 0, 1 << LISTEN)
    body = asked + bytes(48)
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
    """Samples the accept queues of services, given by name with the port that each listens on."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        super().__init__(self._sample, INTERVAL_S, at_end=True)
        self._services = {port: name for name, port in ports.items()}
        self._rows: list[tuple[int, str, int, int, int]] = []

    def _sample(self) -> None:
        now = time.monotonic_ns()
        # Several sockets share a port where each worker listens for itself.
        sums: dict[str, tuple[int, int, int]] = {}
        for one in listeners():
            if name := self._services.get(one.port):
                waiting, backlog, drops = sums.get(name, (0, 0, 0))
                sums[name] = (waiting + one.waiting, backlog + one.backlog, drops + one.drops)
        self._rows += [(now, name, *values) for name, values in sums.items()]

    def table(self) -> pd.DataFrame:
        """Return t_ns, service, waiting and backlog (then), and drops (cumulative)."""
        return pd.DataFrame(self._rows, columns=["t_ns", "service", "waiting", "backlog", "drops"])
