"""What a PostgreSQL server's backends wait for during a load, looked at with a fixed rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

import pandas as pd

from perflab.errors import StackError
from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene, no_node
from perflab.load.workload import Workload
from perflab.recordings.columns import WAITS, described_schema
from perflab.sampling.sampler import Repeated
from perflab.stacks.plan import StackPlan

INTERVAL_S = 0.1
COLUMNS = ["t_ns", "state", "wait_event_type", "wait_event", "count"]
Wait = tuple[str, str, str, int]


class DatabaseWaits(Instrument):
    """Samples ``pg_stat_activity`` of a node into the table ``waits``."""

    tables: ClassVar = {"waits": described_schema(WAITS)}

    node: str

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _DatabaseWaits(scene)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that there is no such node, or that it is not the stack's database."""
        if self.node == stack.database:
            return []
        return no_node("database waits", self.node, stack) or [
            f"database waits: node '{self.node}' is not the stack's database"
        ]


class _DatabaseWaits(Look):
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._sampler: WaitSampler | None = None

    def begin(self) -> None:
        """Begin to sample."""
        database = self._scene.residents.database(self._scene.treatment)
        assert database is not None
        self._sampler = WaitSampler(database.waits)
        self._sampler.start()

    def end(self) -> None:
        """End the sampling."""
        assert self._sampler is not None
        self._sampler.stop()

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return what was sampled."""
        return {} if self._sampler is None else {"waits": self._sampler.waits()}

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return the table."""
        return Observation(tables=self.left())


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
