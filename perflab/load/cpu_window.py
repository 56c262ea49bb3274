"""The CPU time that a load's own process takes while it measures."""

from __future__ import annotations

import time

from perflab.load.workload import Burst, ClosedLoop, OpenLoop


class CpuWindow:
    """This process's CPU time over the measure stage, from its first to its last start.

    Where all start ``at_once`` nothing lies between these two: it is then taken to the end.
    """

    def __init__(self, at_once: bool = False) -> None:
        self._at_once = at_once
        self.began = False
        self.used_ns = 0
        self._ended = False
        self._began_ns = 0

    def begin(self) -> None:
        """The first measured request is due."""
        self.began = True
        self._began_ns = time.process_time_ns()

    def end(self) -> None:
        """The last measured request is due; only the first call counts."""
        if not self._at_once:
            self.finish()

    def finish(self) -> None:
        """The load is over."""
        if self.began and not self._ended:
            self._ended = True
            self.used_ns = time.process_time_ns() - self._began_ns


def is_at_once(arrivals: OpenLoop | Burst | ClosedLoop) -> bool:
    """Return whether every measured request is planned for one and the same instant."""
    if isinstance(arrivals, Burst):
        return arrivals.waves == 1
    if isinstance(arrivals, OpenLoop) or not 0 < arrivals.requests <= arrivals.users:
        return False
    return not (arrivals.warmup_requests or arrivals.warmup_s or arrivals.ramp_s)
