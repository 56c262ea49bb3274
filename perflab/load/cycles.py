"""What a user of a closed loop is busy with, from one plan to the next.

In windows, counts of what was done are wrong by the length of a request: users begin each window
together, so that answers come in steps of a round, and a counted part of 40 ms holds seven rounds
of 6 ms as often as 6.67 allow. A cycle that lies in a counted part only in part counts as that
part. Where cycles do not depend on where a window ends, the expected sum of these shares is the
throughput of the loop without windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflab.load.windows import time_within


@dataclass(frozen=True)
class Cycles:
    """When a user is free again: ``think_ns`` after an answer, at least ``pacing_ns`` apart."""

    think_ns: int = 0
    pacing_ns: int = 0

    def shares(self, rows: np.ndarray, spans: np.ndarray, pauses: np.ndarray) -> np.ndarray:
        """Return which share of each request's cycle lies in some spans.

        Parameters
        ----------
        rows : structured array, shape (n,)
            With ``planned_ns`` and ``done_ns``.
        spans, pauses : array of int64, shape (spans, 2)
            Begins and ends in ns, in order. In a pause its service did not work: no cycle goes on.
        """
        planned_ns, done_ns = rows["planned_ns"], rows["done_ns"]
        free_ns = np.maximum(done_ns + self.think_ns, planned_ns + self.pacing_ns)
        lengths = free_ns - planned_ns - time_within(planned_ns, done_ns, pauses)
        inside = time_within(planned_ns, free_ns, spans)
        shares: np.ndarray = np.minimum(1.0, inside / np.maximum(1, lengths))
        return shares
