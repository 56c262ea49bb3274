"""The kernel's part in a load: backlogs, TIME_WAIT, what was sent again, context switches.

The table ``kernel`` holds what is **host-wide**: counters of the network namespace and of all
cores, with the traffic of every other process in it. Containers use the host's network, so it holds
for both backends. ``accept_queues`` and ``switches`` are **the services' own**, by the port that
each listens on and by its threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.recordings import Remark
from perflab.sampling.kernel import HOST, QUEUES, KernelSampler
from perflab.sampling.switches import COLUMNS, switch_sampler
from perflab.sampling.thread_accounts import AccountSampler

KERNEL, ACCEPT_QUEUES, SWITCHES = "kernel", "accept_queues", "switches"
NOTHING = float("nan")


class KernelAccounts(Instrument):
    """Reads them into three tables, and into columns of the trial's row.

    ``time_wait_max``: the most sockets in TIME_WAIT at once, and ``host_switches_per_s``: context
    switches of all cores, both host-wide and in the measured stage. By service
    ``voluntary_switches_per_s_*`` and ``involuntary_switches_per_s_*`` in that stage, and of its
    listening socket over the whole load ``accept_queue_max_*``, the longest queue that was seen,
    and ``accept_drops_*``, connections that found no room. NaN where the kernel does not tell.
    """

    tables: ClassVar = {KERNEL: HOST, ACCEPT_QUEUES: QUEUES, SWITCHES: COLUMNS}

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _KernelAccounts(scene)


class _KernelAccounts(Look):
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._services: tuple[str, ...] = ()
        self._kernel: KernelSampler | None = None
        self._switches: AccountSampler | None = None

    def begin(self) -> None:
        """Begin to read."""
        active = self._scene.residents.active(self._scene.treatment)
        self._services = tuple(active)
        self._kernel = KernelSampler({name: each.launch.port for name, each in active.items()})
        self._switches = switch_sampler({name: each.meter() for name, each in active.items()})
        self._kernel.start()
        self._switches.start()

    def end(self) -> None:
        """End the reading."""
        assert self._kernel is not None
        assert self._switches is not None
        self._switches.stop()
        self._kernel.stop()

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return what was read."""
        if self._kernel is None or self._switches is None:
            return {}
        return {
            KERNEL: self._kernel.host(),
            ACCEPT_QUEUES: self._kernel.queues(),
            SWITCHES: self._switches.table(),
        }

    def observe(self, load: Load) -> Observation:
        """Return the columns and the tables, and which services had a full backlog."""
        tables = self.left()
        span = load.result.begin_ns, load.result.end_ns
        columns = {
            **host_columns(tables[KERNEL], *span),
            **switch_columns(tables[SWITCHES], self._services, *span),
            **queue_columns(tables[ACCEPT_QUEUES], self._services),
        }
        return Observation(columns, tables, warnings=full_backlogs(tables[ACCEPT_QUEUES]))


def host_columns(kernel: pd.DataFrame, begin_ns: int, end_ns: int) -> dict[str, Any]:
    """Return what the whole host did between two instants."""
    inside = kernel[(kernel["t_ns"] >= begin_ns) & (kernel["t_ns"] <= end_ns)]
    most = float(inside["time_wait"].max()) if len(inside) else NOTHING
    return {
        "time_wait_max": most,
        "host_switches_per_s": _rate(kernel, "switches", begin_ns, end_ns),
    }


def switch_columns(
    switches: pd.DataFrame, services: Iterable[str], begin_ns: int, end_ns: int
) -> dict[str, Any]:
    """Return ``voluntary_switches_per_s_*`` and ``involuntary_...`` between two instants."""
    row: dict[str, Any] = {}
    for name in services:
        own = switches[switches["service"] == name]
        for kind in ("voluntary", "involuntary"):
            row[f"{kind}_switches_per_s_{name}"] = _rate(own, kind, begin_ns, end_ns)
    return row


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


def _rate(own: pd.DataFrame, column: str, begin_ns: int, end_ns: int) -> float:
    """Return a count a second, by interpolating a cumulative one."""
    if len(own) < 2 or end_ns <= begin_ns:
        return NOTHING
    counted = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own[column].to_numpy())
    return float((counted[1] - counted[0]) / (end_ns - begin_ns) * 1e9)
