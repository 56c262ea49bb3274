"""How long the threads of every service ran, and were ready to run and waited for a core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.sampling.schedules import COLUMNS, schedule_sampler
from perflab.sampling.thread_accounts import AccountSampler

TABLE = "schedules"


class SchedulerAccounts(Instrument):
    """Reads the scheduler's accounts into the table ``schedules`` and two columns a service.

    ``run_share_<service>`` and ``core_wait_share_<service>``: seconds that its threads ran, or
    waited for a core, per second of the measured stage, summed over the threads; NaN where the
    kernel does not tell.

    Of a thread that ended what it did since the last look is lost, so ``run_share`` beside
    ``cpu_share`` says how much of a service these accounts see.
    """

    tables: ClassVar = {TABLE: COLUMNS}

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _SchedulerAccounts(scene)


class _SchedulerAccounts(Look):
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._services: tuple[str, ...] = ()
        self._sampler: AccountSampler | None = None

    def begin(self) -> None:
        """Begin to read."""
        active = self._scene.residents.active(self._scene.treatment)
        self._services = tuple(active)
        self._sampler = schedule_sampler({name: each.meter() for name, each in active.items()})
        self._sampler.start()

    def end(self) -> None:
        """End the reading."""
        assert self._sampler is not None
        self._sampler.stop()

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return what was read."""
        return {} if self._sampler is None else {TABLE: self._sampler.table()}

    def observe(self, load: Load) -> Observation:
        """Return the columns and the table."""
        tables = self.left()
        begin_ns, end_ns = load.result.begin_ns, load.result.end_ns
        columns = schedule_columns(tables[TABLE], self._services, begin_ns, end_ns)
        return Observation(columns, tables)


def schedule_columns(
    accounts: pd.DataFrame, services: Iterable[str], begin_ns: int, end_ns: int
) -> dict[str, Any]:
    """Return ``run_share_*`` and ``core_wait_share_*`` of services between two instants."""
    row: dict[str, Any] = {}
    for name in services:
        own = accounts[accounts["service"] == name]
        row[f"run_share_{name}"] = _share(own, "run_ns", begin_ns, end_ns)
        row[f"core_wait_share_{name}"] = _share(own, "delay_ns", begin_ns, end_ns)
    return row


def _share(own: pd.DataFrame, column: str, begin_ns: int, end_ns: int) -> float:
    """Return time over wall time, by interpolating cumulative time."""
    if len(own) < 2 or end_ns <= begin_ns:
        return float("nan")
    used = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own[column].to_numpy())
    return float((used[1] - used[0]) / (end_ns - begin_ns))
