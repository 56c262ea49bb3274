"""What a registry counts of itself while it is under load, asked again and again."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pandas as pd

from perflab.errors import StackError
from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.instruments.instrument import no_node
from perflab.load.workload import Workload
from perflab.sampling.sampler import Repeated
from perflab.stacks.asking import exchange
from perflab.stacks.plan import StackPlan
from perflab.systems.registry.counted import COUNTED, counted_columns, download_columns

INTERVAL_S = 0.2
# Long enough for a busy service; what is silent for longer is asked anew, so that a look can end.
PATIENCE_S = 3.0
TABLE = "registry_counts"
PATH = "/counts"


class RegistryCounts(Instrument):
    """Asks a registry for its counts five times a second, into the table ``registry_counts``.

    Instants are CLOCK_MONOTONIC: ``t_ns`` when it was asked, ``answered_ns`` when it answered. A
    service whose event loop is held up does not answer: ``answered_ns`` is then 0, and its numbers
    are NaN. With ``downloads`` the lab's own load is one of downloads, and is summed up as such.
    """

    tables: ClassVar = {
        TABLE: {"t_ns": "int64", "answered_ns": "int64", **dict.fromkeys(COUNTED, "double")}
    }

    node: str
    downloads: bool = True

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _RegistryCounts(scene.instance(self.node).launch.control_port, self.downloads)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that there is no such node."""
        return no_node("registry counts", self.node, stack)


class _RegistryCounts(Look):
    def __init__(self, port: int, downloads: bool = True) -> None:
        self._port = port
        self._downloads = downloads
        self._rows: list[dict[str, float]] = []
        self._repeated = Repeated(self._ask, INTERVAL_S)

    def begin(self) -> None:
        """Begin to ask."""
        self._repeated.start()

    def end(self) -> None:
        """Ask no more."""
        self._repeated.stop()

    def after(self) -> None:
        """Ask once more: what was counted until the end."""
        self._ask()

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return what was answered."""
        return {TABLE: self._table()} if self._rows else {}

    def observe(self, load: Load) -> Observation:
        """Return the table, and what it comes to."""
        table = self._table()
        columns = {
            **(download_columns(load.result.requests) if self._downloads else {}),
            **counted_columns(table, load.result.begin_ns, load.result.end_ns),
        }
        return Observation(columns, self.left())

    def _ask(self) -> None:
        asked_ns = time.monotonic_ns()
        found = self._answer()
        answered_ns = time.monotonic_ns() if found else 0
        numbers = {name: float(found.get(place, math.nan)) for name, place in COUNTED.items()}
        self._rows.append({"t_ns": asked_ns, "answered_ns": answered_ns, **numbers})

    def _answer(self) -> dict[str, Any]:
        try:
            status, text = exchange(self._port, "GET", PATH, None, PATIENCE_S)
            return dict(json.loads(text)) if status == 200 else {}
        except (StackError, ValueError, TypeError):
            # The trial's own check tells of a dead service; one that is held up is silent.
            return {}

    def _table(self) -> pd.DataFrame:
        return pd.DataFrame(self._rows, columns=["t_ns", "answered_ns", *COUNTED])
