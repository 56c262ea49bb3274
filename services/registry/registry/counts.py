"""What the service counts since its start or its last reset."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from registry.timing import clock


@dataclass
class Counts:
    """Plain numbers; any thread may add to them.

    ``in_flight`` are downloads between their request and the last byte that the application gave
    away; ``got`` are files that came whole from the store, and ``get_s`` how long they took.
    """

    in_flight: int = 0
    most_in_flight: int = 0
    completed: int = 0
    aborted: int = 0
    redirected: int = 0
    bytes_read: int = 0
    bytes_given: int = 0
    whole_gets: int = 0
    get_s: float = 0.0
    refused: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Count a download that begins."""
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def end(self, outcome: str, given: int) -> None:
        """Count a download that has ended, ``completed``, ``redirected``, ``aborted`` or ``""``."""
        with self._lock:
            self.in_flight -= 1
            self.bytes_given += given
            if outcome:
                setattr(self, outcome, getattr(self, outcome) + 1)

    def read(self, length: int) -> None:
        """Count bytes that came from the store."""
        with self._lock:
            self.bytes_read += length

    def got(self, began_ns: int) -> None:
        """Count a file, or a part of one, that came whole."""
        with self._lock:
            self.whole_gets += 1
            self.get_s += (clock() - began_ns) / 1e9

    def refuse(self, code: str) -> None:
        """Count a refusal by its code."""
        with self._lock:
            self.refused[code] = self.refused.get(code, 0) + 1

    def clear(self) -> None:
        """Count from zero, and let the highest memory be that of now."""
        with self._lock:
            fresh = Counts()
            for each in fields(Counts):
                setattr(self, each.name, getattr(fresh, each.name))
        forget_highest_rss()

    def shown(self) -> dict[str, Any]:
        """Return the counts, with what the process itself uses now.

        ``loop_cpu_s`` is the CPU time of the thread that calls, which is the event loop's.
        """
        with self._lock:
            counted = {each.name: getattr(self, each.name) for each in fields(Counts)}
            counted["refused"] = dict(self.refused)
        return {
            **counted,
            **memory(),
            "threads": threading.active_count(),
            "files": len(list(Path("/proc/self/fd").iterdir())),
            "cpu_s": time.process_time(),
            "loop_cpu_s": time.thread_time(),
            "monotonic_ns": time.monotonic_ns(),
        }


def memory() -> dict[str, int]:
    """Return this process's resident memory, now and at its highest. Source: proc(5), status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split()[0]: 1024 * int(line.split()[1]) for line in lines if " kB" in line}
    return {"rss_bytes": found.get("VmRSS:", 0), "highest_rss_bytes": found.get("VmHWM:", 0)}


def forget_highest_rss() -> None:
    """Let the highest memory begin anew. Source: proc(5), clear_refs."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return
