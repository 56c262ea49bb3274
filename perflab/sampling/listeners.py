"""Listening TCP sockets as the kernel accounts for each: who waits in its queue, what it dropped.

Unlike the counters of ``/proc/net``, which are those of all processes, these are of one socket: by
its port it is known whose. They are asked for over netlink (Linux, ``sock_diag(7)``), which names
listening sockets alone, however many connections there are.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from perflab.sampling.sampler import INTERVAL_S, Repeated

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
