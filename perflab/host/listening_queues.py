"""Queues of listening sockets: how many connections wait in them, and how many were dropped.

They are counted per socket, which the port assigns to a service. The kernel reports them over
netlink (``sock_diag(7)``), which names listening sockets only.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pandas as pd

from perflab.host.meters import INTERVAL_S, Repeated

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
