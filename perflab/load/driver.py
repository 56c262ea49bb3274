"""What a load worker asks of a driver, which decides when each request starts and records it."""

from __future__ import annotations

from typing import Protocol

from perflab.load.cpu_window import CpuWindow


class Driver(Protocol):
    """Plans requests from a common start until its end or :meth:`stop`."""

    cpu: CpuWindow
    in_flight: int

    @property
    def unsent(self) -> int:
        """Return the planned requests that were never started."""

    async def run(self, start_ns: int) -> None:
        """Return when every request that was started has ended."""

    def stop(self) -> None:
        """Start nothing more; what is under way may end."""
