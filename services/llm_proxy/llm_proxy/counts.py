"""What the proxy counts since its start or its last reset."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass
class Counts:
    """Plain numbers of one event loop.

    ``open`` are requests for an answer that are under way, ``streams_open`` those whose stream has
    begun. Each ends as ``completed``, as ``aborted`` (its client went), or as ``failed``, then also
    by its code in ``refused``. ``upstream_stopped`` are answers of the upstream that were not read
    to their end.
    """

    requests: int = 0
    with_tools: int = 0
    open: int = 0
    most_open: int = 0
    streams_open: int = 0
    most_streams_open: int = 0
    completed: int = 0
    aborted: int = 0
    failed: int = 0
    upstream_stopped: int = 0
    chunks: int = 0
    bytes_read: int = 0
    bytes_given: int = 0
    connections_made: int = 0
    connections_reused: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """Count a request that begins."""
        self.requests += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)

    def end(self, outcome: str) -> None:
        """Count a request that is over: ``completed``, ``aborted`` or ``failed``."""
        self.open -= 1
        setattr(self, outcome, getattr(self, outcome) + 1)

    def begin_stream(self) -> None:
        """Count a stream that begins."""
        self.streams_open += 1
        self.most_streams_open = max(self.most_streams_open, self.streams_open)

    def refuse(self, code: str) -> None:
        """Count a refusal, or an error in a stream, by its code."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def clear(self) -> None:
        """Count from zero."""
        fresh = Counts()
        for each in fields(Counts):
            setattr(self, each.name, getattr(fresh, each.name))
        forget_highest_rss()

    def shown(self) -> dict[str, Any]:
        """Return the counts, with what the process itself uses now."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(Counts)},
            **memory(),
            "tasks": len(asyncio.all_tasks()),
            "files": len(list(Path("/proc/self/fd").iterdir())),
            "cpu_s": time.process_time(),
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
