"""What the service counts since its start or its last reset."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from specimen import counts


@dataclass
class Counts(counts.Counts):
    """Messages by what became of them; ``open`` are the users who are connected."""

    received: int = 0
    delivered: int = 0
    dropped: int = 0
    acknowledged: int = 0
    stored: int = 0
    not_stored: int = 0

    def shown(self) -> dict[str, Any]:
        """Return the counts, with CPU times since the start of the process.

        ``loop_cpu_s`` is the CPU time of the thread that calls, which is the event loop's: what
        ``cpu_s`` has beyond it was used by other threads, perhaps on another core.
        """
        return {**super().shown(), "loop_cpu_s": time.thread_time()}
