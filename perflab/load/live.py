"""What is known of a worker's load while it runs, read from the rows it has spooled.

The reader pays for the statistics: in the worker they would delay requests by half a millisecond,
four times a second.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from perflab.load.columns import latency_counts, rows_since
from perflab.load.failure_stop import is_failure
from perflab.load.outcome import CENSORED_CODES, MEASURE
from perflab.load.stopping import Progress


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
        # What ran into a time-out took at least so long: an objective that is missed by that is.
        known = good | np.isin(rows["error"], CENSORED_CODES)
        times = rows["done_ns"][known] - rows["planned_ns"][known]
        counts = Counter(latency_counts(times))
        return Progress(self._finished, self._measured, self._failed, in_flight, counts)
