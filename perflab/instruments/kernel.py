"""Instruments of the kernel's counts per service, and of the waits in a database.

Threads run and wait for cores; listening sockets queue and drop connections.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perflab.errors import StackError
from perflab.host.listening_queues import QueueSampler
from perflab.host.meters import Repeated
from perflab.host.thread_accounts import AccountSampler
from perflab.instruments.instrument import Instrument, Load, Observation, OfNode, Sampled
from perflab.load.workload import Workload
from perflab.recordings import Remark
from perflab.recordings.columns import WAITS
from perflab.stacks.plan import StackPlan
from perflab.statistics.cumulative import used_ns

NOTHING = float("nan")
INTERVAL_S = 0.1
WAIT_COLUMNS = ["t_ns", "state", "wait_event_type", "wait_event", "count"]


class _SchedulerAccounts(Sampled["SchedulerAccounts"]):
    @cached_property
    def sampler(self) -> AccountSampler:
        services = self.scene.services.items()
        return AccountSampler({name: instance.meter() for name, instance in services})

    def observe(self, load: Load) -> Observation:
        span = load.result.begin_ns, load.result.end_ns
        return Observation(schedule_columns(self.sampler.table(), self.scene.services, *span))


class SchedulerAccounts(Instrument):
    """Reads the scheduler's accounts of every service into two columns each.

    ``run_share_<service>`` and ``core_wait_share_<service>``: seconds that its threads ran, or
    waited for a core, per second of the measured stage, summed over the threads; NaN where the
    kernel does not tell.

    The last time of a thread that ended between two samples is lost, so the ratio of ``run_share``
    to ``cpu_share`` says how much of a service these accounts see.
    """

    at_work: ClassVar = _SchedulerAccounts


def schedule_columns(
    accounts: pd.DataFrame, services: Iterable[str], begin_ns: int, end_ns: int
) -> dict[str, Any]:
    """Return ``run_share_*`` and ``core_wait_share_*`` of services between two instants."""
    row: dict[str, Any] = {}
    length_ns = max(1, end_ns - begin_ns)
    for name in services:
        account = accounts[accounts["service"] == name]
        row[f"run_share_{name}"] = used_ns(account, "run_ns", begin_ns, end_ns) / length_ns
        row[f"core_wait_share_{name}"] = used_ns(account, "delay_ns", begin_ns, end_ns) / length_ns
    return row


class _AcceptQueues(Sampled["AcceptQueues"]):
    @cached_property
    def sampler(self) -> QueueSampler:
        services = self.scene.services.items()
        return QueueSampler({name: instance.launch.port for name, instance in services})

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        queues = self.sampler.table()
        columns = queue_columns(queues, self.scene.services)
        return Observation(columns, warnings=full_backlogs(queues))


class AcceptQueues(Instrument):
    """Samples the connections that every service has not accepted yet.

    For its listening socket over the whole load: ``accept_queue_max_<service>``, the longest queue
    of all samples, and ``accept_drops_<service>``, the connections that found no room. NaN where
    the kernel does not tell.
    """

    at_work: ClassVar = _AcceptQueues


def queue_columns(queues: pd.DataFrame, services: Iterable[str]) -> dict[str, Any]:
    """Return ``accept_queue_max_*`` and ``accept_drops_*`` of services that listen."""
    row: dict[str, Any] = {}
    for name in services:
        queue = queues[queues["service"] == name]
        row[f"accept_queue_max_{name}"] = float(queue["waiting"].max()) if len(queue) else NOTHING
        row[f"accept_drops_{name}"] = _dropped(queue)
    return row


def full_backlogs(queues: pd.DataFrame) -> list[Remark]:
    """Return a warning for each service whose listening socket dropped connections."""
    remarks = []
    for name, queue in queues.groupby("service", sort=False):
        dropped = _dropped(queue)
        if dropped > 0:
            room, longest = int(queue["backlog"].max()), int(queue["waiting"].max())
            text = (
                f"service '{name}' dropped {dropped:.0f} connections during the load: its "
                f"listening socket has room for {room + 1}, and up to {longest} waited there"
            )
            remarks.append(Remark(code="service.backlog", side="server", text=text))
    return remarks


def _dropped(queue: pd.DataFrame) -> float:
    """Return how many connections were dropped; a new listening socket begins at 0."""
    if queue.empty:
        return NOTHING
    steps = np.diff(queue["drops"].to_numpy(dtype=float))
    return float(steps[steps > 0].sum())


class _DatabaseWaits(Sampled["DatabaseWaits"]):
    @cached_property
    def sampler(self) -> Repeated:
        return Repeated(self._sample, INTERVAL_S)

    def _sample(self) -> None:
        database = self.scene.residents.database(self.scene.treatment)
        assert database is not None
        # CLOCK_MONOTONIC, the clock of the requests.
        now = time.monotonic_ns()
        try:
            self.rows.extend((now, *row) for row in database.waits())
        except StackError:
            # The trial's own check reports a dead database, with its log.
            return

    def left(self) -> Mapping[str, pd.DataFrame]:
        frame = pd.DataFrame(self.rows, columns=WAIT_COLUMNS)
        return {"waits": frame.astype({"t_ns": "int64", "count": "int32"})}

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        return Observation(tables=self.left())


class DatabaseWaits(OfNode):
    """Samples ``pg_stat_activity`` of a node into the table ``waits``."""

    at_work: ClassVar = _DatabaseWaits
    tables: ClassVar = {"waits": WAITS}

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:
        """Return a problem where there is no such node, or it is not the stack's database."""
        if self.node == stack.database:
            return []
        problem = f"DatabaseWaits: node '{self.node}' is not the stack's database"
        return super().obstacles(stack, workload) or [problem]
