"""What a PostgreSQL server's backends wait for during a load, looked at with a fixed rate."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
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
        database = scene.residents.database(scene.treatment)
        assert database is not None
        self._database = database
        self._rows: list[tuple[int, str, str, str, int]] = []
        self._repeated = Repeated(self._sample, INTERVAL_S)

    def begin(self) -> None:
        self._repeated.start()

    def end(self) -> None:
        self._repeated.stop()

    def _sample(self) -> None:
        # CLOCK_MONOTONIC, the clock of the requests.
        now = time.monotonic_ns()
        try:
            self._rows.extend((now, *row) for row in self._database.waits())
        except StackError:
            # The trial's own check tells of a dead database, with its log.
            return

    def left(self) -> Mapping[str, pd.DataFrame]:
        frame = pd.DataFrame(self._rows, columns=COLUMNS)
        return {"waits": frame.astype({"t_ns": "int64", "count": "int32"})}

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        return Observation(tables=self.left())
