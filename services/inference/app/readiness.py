"""Which of the service's workers this one is, and how many of them are ready.

The workers share one listening socket, so whichever is up first would answer for all of them. Each
one therefore shows signs that the others can see: sockets with abstract names, which the kernel
removes when their process ends, however it ends. Source: unix(7).
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

LISTED = Path("/proc/net/unix")


class Sign:
    """The signs of this worker; ``port`` tells one service from another."""

    def __init__(self, port: int, workers: int) -> None:
        self._prefix = f"inference-{port}-"
        self._sockets: list[socket.socket] = []
        # A worker that starts in another's place may find it still ending: then it is the last.
        free = (number for number in range(workers) if self._show(f"place-{number}"))
        self.place = next(free, workers - 1)

    def _show(self, name: str) -> bool:
        """Show a sign; return whether nobody else shows it."""
        sign = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            sign.bind(f"\0{self._prefix}{name}")
        except OSError:
            sign.close()
            return False
        self._sockets.append(sign)
        return True

    def show_ready(self) -> None:
        """Show that this worker can answer."""
        self._show(f"ready-{os.getpid()}")

    def count(self) -> int:
        """Return how many workers are ready, this one included."""
        return LISTED.read_text().count(f" @{self._prefix}ready-")
