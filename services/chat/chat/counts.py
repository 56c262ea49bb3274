"""What the service counts since its start or its last reset."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field


@dataclass(slots=True)
class Counts:
    """Plain numbers; the message path adds to them."""

    received: int = 0
    delivered: int = 0
    dropped: int = 0
    acknowledged: int = 0
    stored: int = 0
    not_stored: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def refuse(self, code: str) -> None:
        """Count a refusal by its code."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def clear(self) -> None:
        """Count from zero."""
        for name, value in asdict(Counts()).items():
            setattr(self, name, value)

    def shown(self) -> dict[str, object]:
        """Return the counts, with CPU times since the start of the process.

        ``loop_cpu_s`` is the CPU time of the thread that calls, which is the event loop's: what
        ``cpu_s`` has beyond it was used by other threads, perhaps on another core.
        """
        return {
            **asdict(self),
            "cpu_s": time.process_time(),
            "loop_cpu_s": time.thread_time(),
            "monotonic_ns": time.monotonic_ns(),
        }
