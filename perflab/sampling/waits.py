"""What the backends of a PostgreSQL server wait for, at a fixed rate."""

from __future__ import annotations

import time
from collections.abc import Callable

import pandas as pd

from perflab.errors import StackError
from perflab.sampling.repeated import Repeated

INTERVAL_S = 0.1
COLUMNS = ["t_ns", "state", "wait_event_type", "wait_event", "count"]
Wait = tuple[str, str, str, int]


class WaitSampler:
    """Samples wait events in a thread of its own between ``start`` and ``stop``.

    Instants are CLOCK_MONOTONIC, the clock of the requests, taken right before each reading.
    """

    def __init__(self, read: Callable[[], list[Wait]]) -> None:
        self._read = read
        self._rows: list[tuple[int, str, str, str, int]] = []
        repeated = Repeated(self._sample, INTERVAL_S)
        self.start, self.stop = repeated.start, repeated.stop

    def _sample(self) -> None:
        now = time.monotonic_ns()
        try:
            self._rows.extend((now, *row) for row in self._read())
        except StackError:
            # The trial's own check tells of a dead database, with its log.
            return

    def waits(self) -> pd.DataFrame:
        """Return t_ns, state, wait_event_type, wait_event and count."""
        frame = pd.DataFrame(self._rows, columns=COLUMNS)
        return frame.astype({"t_ns": "int64", "count": "int32"})
