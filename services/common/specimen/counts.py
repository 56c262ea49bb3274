"""What a service counts since its start or its last reset."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass
class Counts:
    """Plain numbers, to which any thread may add; a service adds fields of its own.

    ``open`` are requests under way; ``refused`` is by code; ``most_x`` is the highest ``x``.
    """

    open: int = 0
    most_open: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def add(self, **changes: int) -> None:
        """Add to counts by their names."""
        with self._lock:
            for name, change in changes.items():
                value = getattr(self, name) + change
                setattr(self, name, value)
                if value > getattr(self, f"most_{name}", value):
                    setattr(self, f"most_{name}", value)

    def refuse(self, code: str) -> None:
        """Count a refusal by its code."""
        with self._lock:
            self.refused[code] = self.refused.get(code, 0) + 1

    def clear(self) -> None:
        """Count from zero, but for what is under way."""
        with self._lock:
            fresh = type(self)()
            for name in [item.name for item in fields(self)]:
                if name.startswith("most_"):
                    setattr(self, name, getattr(self, name.removeprefix("most_")))
                elif not hasattr(self, f"most_{name}"):
                    setattr(self, name, getattr(fresh, name))

    def shown(self) -> dict[str, Any]:
        """Return the counts, with what the process itself uses now."""
        with self._lock:
            counted = {item.name: getattr(self, item.name) for item in fields(self)}
            counted["refused"] = dict(self.refused)
        return {**counted, **process_use()}


def process_use() -> dict[str, float]:
    """Return what this process uses: memory, descriptors, CPU. Source: proc(5), status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    resident = next(line for line in lines if line.startswith("VmRSS:"))
    return {
        "rss_bytes": 1024 * int(resident.split()[1]),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "cpu_s": time.process_time(),
        "monotonic_ns": time.monotonic_ns(),
    }
