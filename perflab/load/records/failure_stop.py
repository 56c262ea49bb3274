"""The stop of a load by its failures.

The instant of the stop is that of the failure which completed the number, over the rows of all
workers: they share a clock, so no message between them decides what came before it. Requests that
ended later, because they were under way or because their worker did not know yet, have a stage of
their own: their server had already failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perflab.load.clients.outcome import AFTER_STOP, CUT_OFF_CODES, MEASURE, WARMUP
from perflab.load.records.columns import REQUESTS, ROW


@dataclass(frozen=True)
class FailureStop:
    """A load's end by its number of failures, the last of which ended at ``at_ns``.

    ``after_s`` is that instant from the common start of the load, ``users`` the number who took
    part then by the plan (None: a load without users).
    """

    failures: int
    at_ns: int
    after_s: float
    users: int | None = None


def is_failure(errors: np.ndarray) -> np.ndarray:
    """Return which error codes are failures; those that the end of a load makes are not."""
    failed: np.ndarray = (errors != 0) & ~np.isin(errors, CUT_OFF_CODES)
    return failed


def mark(folder: Path, workers: int, failures: int) -> int:
    """Set the stage of requests that ended after a number of failures, in all workers' raw rows.

    Return the instant of the failure that completed the number; 0 where there were fewer.
    """
    files = [folder / str(number) / REQUESTS for number in range(workers)]
    parts = [np.memmap(file, dtype=ROW, mode="r+") for file in files if file.stat().st_size]
    ends = [rows["done_ns"][is_failure(rows["error"])] for rows in parts]
    failed_ns = np.sort(np.concatenate(ends)) if ends else np.empty(0, dtype=np.int64)
    if len(failed_ns) < failures:
        return 0
    at_ns = int(failed_ns[failures - 1])
    for rows in parts:
        late = (rows["done_ns"] > at_ns) & np.isin(rows["stage"], (WARMUP, MEASURE))
        rows["stage"][late] = AFTER_STOP
        rows.flush()
    return at_ns
