"""Where a load ended by its number of failures, found in its record.

The instant is that of the failure which completed the number, over the rows of all workers: they
share a clock, and so no message between them decides what was before it and what after. What ended
later, because it was under way or because a worker had not heard yet, has a stage of its own: it
ended on a server that had already failed, in a load that was going.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perflab.load.columns import REQUESTS, ROW
from perflab.load.outcome import AFTER_STOP, CUT_OFF_CODES, MEASURE, WARMUP


@dataclass(frozen=True)
class FailureStop:
    """A load's end by its number of failures.

    Attributes
    ----------
    failures : int
        The number that ended it.
    at_ns : int
        When the last of them ended (CLOCK_MONOTONIC).
    after_s : float
        The same from the common start of the load.
    users : int, optional
        Users who took part then, by the plan; None where a load has no users.
    """

    failures: int
    at_ns: int
    after_s: float
    users: int | None = None


def is_failure(errors: np.ndarray) -> np.ndarray:
    """Return which error codes count; those that the end of a load makes do not."""
    counts: np.ndarray = (errors != 0) & ~np.isin(errors, CUT_OFF_CODES)
    return counts


def mark(folder: Path, workers: int, failures: int) -> int:
    """Give what ended after a number of failures its stage, in the raw rows of all workers.

    Returns
    -------
    int
        The instant of the failure that completed the number; 0, and nothing is changed, where
        there were fewer.
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
