"""The kernel's part in a load: how long services' threads had a core, and who was let in.

Both are the services' own: by their threads, and by the port that each listens on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.recordings import Remark
from perflab.sampling.listeners import QueueSampler
from perflab.sampling.thread_accounts import AccountSampler

NOTHING = float("nan")


class SchedulerAccounts(Instrument):
    """Reads the scheduler's accounts of every service into two columns each.

    ``run_share_<service>`` and ``core_wait_share_<service>``: seconds that its threads ran, or
    waited for a core, per second of the measured stage, summed over the threads; NaN where the
    kernel does not tell.

    Of a thread that ended what it did since the last look is lost, so ``run_share`` beside
    ``cpu_share`` says how much of a service these accounts see.
    """

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _SchedulerAccounts(scene)


class _SchedulerAccounts(Look):
    def __init__(self, scene: Scene) -> None:
        active = scene.residents.active(scene.treatment)
        self._services = tuple(active)
        meters = {name: each.meter() for name, each in active.items()}
        self._sampler = AccountSampler(meters)

    def begin(self) -> None:
        """Begin to read."""
        self._sampler.start()

    def end(self) -> None:
        """End the reading."""
        self._sampler.stop()

    def observe(self, load: Load) -> Observation:
        """Return the columns."""
        span = load.result.begin_ns, load.result.end_ns
        return Observation(schedule_columns(self._sampler.table(), self._services, *span))


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
        return NOTHING
    used = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own[column].to_numpy())
    return float((used[1] - used[0]) / (end_ns - begin_ns))


class AcceptQueues(Instrument):
    """Looks at the connections that every service has not accepted yet.

    Of its listening socket over the whole load: ``accept_queue_max_<service>``, the longest queue
    that was seen, and ``accept_drops_<service>``, connections that found no room. NaN where the
    kernel does not tell.
    """

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _AcceptQueues(scene)


class _AcceptQueues(Look):
    def __init__(self, scene: Scene) -> None:
        active = scene.residents.active(scene.treatment)
        self._services = tuple(active)
        self._sampler = QueueSampler({name: each.launch.port for name, each in active.items()})

    def begin(self) -> None:
        """Begin to read."""
        self._sampler.start()

    def end(self) -> None:
        """End the reading."""
        self._sampler.stop()

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return the columns, and which services had a full backlog."""
        queues = self._sampler.table()
        return Observation(queue_columns(queues, self._services), warnings=full_backlogs(queues))


def queue_columns(queues: pd.DataFrame, services: Iterable[str]) -> dict[str, Any]:
    """Return ``accept_queue_max_*`` and ``accept_drops_*`` of services that listen."""
    row: dict[str, Any] = {}
    for name in services:
        own = queues[queues["service"] == name]
        row[f"accept_queue_max_{name}"] = float(own["waiting"].max()) if len(own) else NOTHING
        row[f"accept_drops_{name}"] = _dropped(own)
    return row


def full_backlogs(queues: pd.DataFrame) -> list[Remark]:
    """Return which services dropped connections at their own listening socket."""
    found = []
    for name, own in queues.groupby("service", sort=False):
        dropped = _dropped(own)
        if dropped > 0:
            room, longest = int(own["backlog"].max()), int(own["waiting"].max())
            text = (
                f"the listening socket of service '{name}' dropped a connection {dropped:.0f} "
                f"times during the load: up to {longest} were seen that it had not accepted yet, "
                f"and it has room for {room + 1}"
            )
            found.append(Remark(code="service.backlog", side="server", text=text))
    return found


def _dropped(own: pd.DataFrame) -> float:
    """Return by how much the drops grew; a socket that listens anew begins at 0."""
    if own.empty:
        return NOTHING
    steps = np.diff(own["drops"].to_numpy(dtype=float))
    return float(steps[steps > 0].sum())
