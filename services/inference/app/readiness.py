"""Which of the service's workers are ready.

The workers share one listening socket, so whichever is up first would answer for all of them. Each
one therefore shows a sign that the others can count: a socket with an abstract name, which the
kernel removes when its process ends, however it ends. Source: unix(7).
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

LISTED = Path("/proc/net/unix")


class Sign:
    """This worker's sign that it is ready; ``port`` tells one service from another."""

    def __init__(self, port: int) -> None:
        self._prefix = f"inference-{port}-"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{self._prefix}{os.getpid()}")

    def count(self) -> int:
        """Return how many workers are ready, this one included."""
        return LISTED.read_text().count(f" @{self._prefix}")
