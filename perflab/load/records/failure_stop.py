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
from perflab.load.records.columns import rows


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
    parts = [rows(folder / str(number), mode="r+") for number in range(workers)]
    failed_ns = np.sort(
        np.concatenate([part["done_ns"][is_failure(part["error"])] for part in parts])
    )
    if len(failed_ns) < failures:
        return 0
    at_ns = int(failed_ns[failures - 1])
    for part in parts:
        late = (part["done_ns"] > at_ns) & np.isin(part["stage"], (WARMUP, MEASURE))
        part["stage"][late] = AFTER_STOP
    return at_ns
