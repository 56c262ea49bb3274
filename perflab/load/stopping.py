"""A load while it runs: what its workers report, and how a check ends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from perflab.load.columns import bin_ms, latency_counts, rows_since
from perflab.load.failure_stop import is_failure
from perflab.load.outcome import CENSORED_CODES, MEASURE


class StopLoad(Exception):
    """Raised by a check to end a load in order: what was recorded is kept.

    With ``within_s``, what is under way is given up after so long; else it has its full timeout.
    """

    def __init__(self, reason: str, within_s: float | None = None) -> None:
        super().__init__(reason)
        self.within_s = within_s


@dataclass
class Progress:
    """What is known while a load runs; ``counts`` is a histogram since the last reading."""

    finished: int = 0
    measured: int = 0
    failed: int = 0
    in_flight: int = 0
    counts: Counter[int] = field(default_factory=Counter)

    @classmethod
    def total(cls, parts: Iterable[Progress]) -> Progress:
        """Add the workers' reports up."""
        whole = cls()
        for part in parts:
            whole.finished += part.finished
            whole.measured += part.measured
            whole.failed += part.failed
            whole.in_flight += part.in_flight
            whole.counts += part.counts
        return whole


def percentile_ms(counts: Mapping[int, int], percentile: float) -> float:
    """Return a percentile of a histogram of ``columns.latency_counts``, within 0.6%."""
    if not counts:
        return float("nan")
    numbers = sorted(counts)
    seen = np.cumsum([counts[number] for number in numbers])
    return bin_ms(numbers[int(np.searchsorted(seen, percentile / 100 * seen[-1]))])


class Live:
    """Follows the rows of one worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._finished = self._failed = self._measured = 0

    def read(self, in_flight: int) -> Progress:
        """Return the sums so far, with the response times since the last reading."""
        rows = rows_since(self._folder, self._finished)
        good = rows["error"] == 0
        self._finished += len(rows)
        self._failed += int(is_failure(rows["error"]).sum())
        self._measured += int((rows["stage"] == MEASURE).sum())
        # What ran into a time-out took at least so long.
        known = good | np.isin(rows["error"], CENSORED_CODES)
        times = rows["done_ns"][known] - rows["planned_ns"][known]
        counts = Counter(latency_counts(times))
        return Progress(self._finished, self._measured, self._failed, in_flight, counts)
