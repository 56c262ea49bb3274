"""The kernel's part in a load: backlogs, TIME_WAIT, switches, and how long threads had a core.

TIME_WAIT and the switches of all cores are **host-wide**, with every other process in them. Queues,
switches and times by service are **the services' own**, by the port that each listens on and by its
threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.recordings import Remark
from perflab.sampling.kernel import KernelSampler
from perflab.sampling.thread_accounts import (
    SWITCHES_EVERY_S,
    TIMES_EVERY_S,
    AccountSampler,
    switches_of,
    times_of,
)

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
        counts = ("run_ns", "delay_ns")
        self._sampler = AccountSampler(meters, times_of, TIMES_EVERY_S, counts)

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


class KernelAccounts(Instrument):
    """Reads queues, TIME_WAIT and context switches into columns of the trial's row.

    ``time_wait_max``: the most sockets in TIME_WAIT at once, and ``host_switches_per_s``: context
    switches of all cores, both host-wide and in the measured stage. By service
    ``voluntary_switches_per_s_*`` and ``involuntary_switches_per_s_*`` in that stage, and of its
    listening socket over the whole load ``accept_queue_max_*``, the longest queue that was seen,
    and ``accept_drops_*``, connections that found no room. NaN where the kernel does not tell.
    """

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _KernelAccounts(scene)


class _KernelAccounts(Look):
    def __init__(self, scene: Scene) -> None:
        active = scene.residents.active(scene.treatment)
        self._services = tuple(active)
        self._kernel = KernelSampler({name: each.launch.port for name, each in active.items()})
        meters = {name: each.meter() for name, each in active.items()}
        counts = ("voluntary", "involuntary")
        self._switches = AccountSampler(meters, switches_of, SWITCHES_EVERY_S, counts)

    def begin(self) -> None:
        """Begin to read."""
        self._kernel.start()
        self._switches.start()

    def end(self) -> None:
        """End the reading."""
        self._switches.stop()
        self._kernel.stop()

    def observe(self, load: Load) -> Observation:
        """Return the columns, and which services had a full backlog."""
        span = load.result.begin_ns, load.result.end_ns
        queues = self._kernel.queues()
        columns = {
            **host_columns(self._kernel.host(), *span),
            **switch_columns(self._switches.table(), self._services, *span),
            **queue_columns(queues, self._services),
        }
        return Observation(columns, warnings=full_backlogs(queues))


def schedule_columns(
    accounts: pd.DataFrame, services: Iterable[str], begin_ns: int, end_ns: int
) -> dict[str, Any]:
    """Return ``run_share_*`` and ``core_wait_share_*`` of services between two instants."""
    row: dict[str, Any] = {}
    for name in services:
        own = accounts[accounts["service"] == name]
        row[f"run_share_{name}"] = _rate(own, "run_ns", begin_ns, end_ns) / 1e9
        row[f"core_wait_share_{name}"] = _rate(own, "delay_ns", begin_ns, end_ns) / 1e9
    return row


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
