"""What a load worker is told, one load and its part of it, and how it reports."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from perflab.load.workload import Workload


class Order:
    """One load, as this worker is to carry it out."""

    def __init__(self, words: dict[str, Any]) -> None:
        self.workload = Workload.model_validate(words["workload"])
        self.url: str = words["url"]
        self.worker: int = words["worker"]
        self.workers: int = words["workers"]
        self.allowed: list[str] = words["allowed"]
        self.folder = Path(words["folder"])
        self.start_ns: int = words["start_ns"]
        self.real_time: bool = words["real_time"]


def share(total: int, number: int, count: int) -> int:
    """Return a worker's part of a total; the parts of all workers add up to it."""
    return total // count + (number < total % count) if number < count else 0


def say(words: dict[str, Any]) -> None:
    """Write one report."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()
