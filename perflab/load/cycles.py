"""What users of a closed loop are busy with in windows, and how many requests that comes to.

Counts of what was done in a window are wrong by the length of a request: users begin each window
together, so that answers come in steps of a round, and a counted part of 40 ms holds seven rounds
of 6 ms where 6.67 would be right. By Little's law (J. D. C. Little, Operations Research 9, 1961)
the throughput of a closed loop is its users over the mean time from one plan of a user to the next,
and that mean is known from the requests that were planned in the counted parts, whenever they
ended: which these are does not depend on how long they take.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from perflab.load.windows import time_within


@dataclass(frozen=True)
class Cycles:
    """Users who are free again ``think_ns`` after an answer, and plan ``pacing_ns`` apart."""

    users: int
    think_ns: int = 0
    pacing_ns: int = 0

    def requests_in(self, span_ns: int, rows: Iterable[np.ndarray], pauses: np.ndarray) -> float:
        """Return how many requests all users make in a time, as long as those that they made.

        Parameters
        ----------
        rows : iterable of structured arrays
            With ``planned_ns`` and ``done_ns`` of the requests that were made, failures included.
        pauses : array of int64, shape (pauses, 2)
            When their service did not work, from a begin to an end in ns: no request goes on then.
        """
        made, length_ns = 0, 0
        for part in rows:
            planned_ns, done_ns = part["planned_ns"], part["done_ns"]
            awake_ns = done_ns - planned_ns - time_within(planned_ns, done_ns, pauses)
            made += len(part)
            length_ns += int(np.maximum(awake_ns + self.think_ns, self.pacing_ns).sum())
        return self.users * span_ns * made / length_ns if length_ns else 0.0
