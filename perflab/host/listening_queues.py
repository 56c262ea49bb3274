"""Queues of listening sockets: how many connections wait in them, and how many were dropped.

They are counted per socket, which the port assigns to a service. Source: sock_diag(7).
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from perflab.host.meters import INTERVAL_S, Repeated
from perflab.host.socket_diagnosis import diagnosed

# linux/sock_diag.h, linux/inet_diag.h; TCP_LISTEN of net/tcp_states.h.
SKMEMINFO, LISTEN, DROPS = 7, 10, 8
PORT_AT, QUEUES_AT, FIXED_BYTES = 4, 56, 72
REQUEST = struct.pack(
    "=BBBBI48x", socket.AF_INET, socket.IPPROTO_TCP, 1 << (SKMEMINFO - 1), 0, 1 << LISTEN
)


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
        return [_listener(*found) for found in diagnosed(REQUEST, FIXED_BYTES)]
    except (OSError, AttributeError, struct.error):
        return []


def _listener(fixed: bytes, attributes: Mapping[int, bytes]) -> Listener:
    (port,) = struct.unpack_from("!H", fixed, PORT_AT)
    waiting, backlog = struct.unpack_from("=II", fixed, QUEUES_AT)
    memory = attributes.get(SKMEMINFO)
    (drops,) = struct.unpack_from("=I", memory, 4 * DROPS) if memory else (0,)
    return Listener(port, waiting, backlog, drops)


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
