"""One load sent by several hosts: a common start, their clocks compared, one record.

Each host's worker holds a part of it (:mod:`perflab.cluster.load_part`). The schedule is that of
one generator with as many workers: a part sends the share of its own. Every host writes by its own
clock; what it wrote is fetched when the load is over and shifted to this one's.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from perflab.cluster import part_calls
from perflab.cluster.clocks import Offset
from perflab.cluster.dispatch import compared, connected
from perflab.cluster.load_part import SENT, PartOrder
from perflab.cluster.parts import LOOK_S, Host, Parts
from perflab.cluster.parts_fetched import fetched, rescue
from perflab.errors import LoadError, ParameterError
from perflab.load.generator import ENDING_S, Share
from perflab.load.host_part import HostPart
from perflab.load.machine_counts import MachineUse
from perflab.load.merging import merged
from perflab.load.once import Ready
from perflab.load.other_clock import shifted
from perflab.load.payload import FileBody
from perflab.load.raw_folders import raw_folder
from perflab.load.result import LoadResult
from perflab.load.stopping import Progress, StopLoad, Watch
from perflab.load.targets import refuse_foreign
from perflab.load.workload import Scripted, Workload

# Orders must have reached all load workers by then; who begins later is told by its host.
START_AHEAD_NS = 1_000_000_000


def on_hosts(scheduler: str, tell: Callable[[str], None] = lambda _: None) -> Ready:
    """Return what gets a load sent by all workers of a scheduler.

    Parameters
    ----------
    scheduler : str
        Its address, such as ``tcp://head:8786``.
    tell : callable
        Receives a line about the hosts and their clocks.

    Returns
    -------
    callable
        As :func:`perflab.load.once.ready`, the number of workers being that of each host. It raises
        ClusterError or HostsDiffer where the hosts cannot send together, and LoadError where one of
        them does not get ready.
    """

    @contextlib.contextmanager
    def begin(workers: int, wait_s: float) -> Iterator[HostGenerators]:
        with connected(scheduler) as client:
            names, _ = compared(client, (), mixed=True)
            parts = Parts(client, names)
            try:
                parts.start(workers, wait_s)
                yield HostGenerators(parts, tell)
            finally:
                parts.close()

    return begin


class HostGenerators:
    """The generators of several hosts, which send every load together.

    Parameters
    ----------
    parts : Parts
        One of each host, ready.
    tell : callable
        Receives a line about the hosts and their clocks before the first load.
    """

    def __init__(self, parts: Parts, tell: Callable[[str], None] = lambda _: None) -> None:
        self._parts = parts
        self._tell = tell
        self._is_told = False

    def run(
        self,
        workload: Workload,
        address: str,
        on_progress: Callable[[Progress], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
        allowed: Sequence[str] = (),
        folder: Path | None = None,
    ) -> LoadResult:
        """Send a workload from all hosts together and return its record.

        The parameters are those of :meth:`perflab.load.generator.Generator.run`.

        Raises
        ------
        ParameterError, TargetRefused
            It cannot be sent from these hosts, or may not; nothing was sent.
        LoadError
            A host was lost, or its part has failed; what the others had sent is in ``folder``.
        """
        refuse_foreign(address, allowed)
        refuse_unfit(workload, self._parts.hosts)
        place = folder.resolve() if folder else raw_folder()
        watch = Watch(workload.stop)
        try:
            before = self._parts.clocks()
            self._tell_of(before)
            start_ns = time.monotonic_ns() + START_AHEAD_NS
            try:
                self._order(workload, address, allowed, before, start_ns)
                self._follow(workload, on_progress, check, watch)
                reports, hosts = self._fetched(place, before, start_ns)
            except Exception:
                rescue(self._parts, place, before)
                raise
        except BaseException:
            if folder is None:
                shutil.rmtree(place, ignore_errors=True)
            raise
        machine = MachineUse.total([host.machine for host in hosts])
        return merged(place, reports, workload, machine, watch, start_ns, hosts)

    def _tell_of(self, clocks: Sequence[Offset]) -> None:
        if self._is_told:
            return
        self._is_told = True
        listed = [
            f"{host.name} ({host.workers} workers, clock known to {clock.error_ns / 1e6:.3f} ms)"
            for host, clock in zip(self._parts.hosts, clocks, strict=True)
        ]
        self._tell(f"{len(listed)} hosts: {', '.join(listed)}")

    def _order(
        self,
        workload: Workload,
        address: str,
        allowed: Sequence[str],
        clocks: Sequence[Offset],
        start_ns: int,
    ) -> None:
        """Give every host its share of the load, to be begun at one instant."""
        hosts = self._parts.hosts
        words, of = workload.model_dump(mode="json"), sum(host.workers for host in hosts)
        for host, clock in zip(hosts, clocks, strict=True):
            host.progress = Progress()
            share, there_ns = Share(host.first, of), start_ns + clock.offset_ns
            order = PartOrder(words, address, tuple(allowed), share, there_ns)
            self._parts.ask(host, part_calls.take, order)

    def _follow(
        self,
        workload: Workload,
        on_progress: Callable[[Progress], None],
        check: Callable[[], None],
        watch: Watch,
    ) -> None:
        """Wait until every host has sent its part, and end the load where it is to end."""
        bound_s = START_AHEAD_NS / 1e9 + workload.bound_s + 2 * workload.timeout_s + 2 * ENDING_S
        deadline = time.monotonic() + bound_s
        sending = list(self._parts.hosts)
        while sending:
            if time.monotonic() > deadline:
                late = ", ".join(host.name for host in sending)
                raise LoadError(f"{late}: did not end within the bounds of the load")
            time.sleep(LOOK_S)
            sending = self._progressed(sending)
            progress = Progress.total(host.progress for host in self._parts.hosts)
            for host in self._parts.hosts:
                host.progress.counts.clear()
            on_progress(progress)
            if watch.see(progress):
                self._parts.stop(watch.reason)
            try:
                check()
            except StopLoad as stop:
                self._parts.stop(str(stop), stop.within_s)
                if stop.within_s is not None:
                    deadline = min(deadline, time.monotonic() + stop.within_s + 2 * ENDING_S)
                check = _nothing

    def _progressed(self, sending: Sequence[Host]) -> list[Host]:
        """Note the progress of hosts; return those that have not sent all of their part."""
        found = self._parts.see(sending)
        for host, seen in zip(sending, found, strict=True):
            host.progress = seen.progress
        return [host for host, seen in zip(sending, found, strict=True) if seen.state != SENT]

    def _fetched(
        self, place: Path, before: Sequence[Offset], start_ns: int
    ) -> tuple[list[dict[str, Any]], list[HostPart]]:
        """Fetch all parts; return the reports of all workers, by our clock, and the parts."""
        reports: list[dict[str, Any]] = []
        hosts = []
        after = self._parts.clocks()
        for host, first, last in zip(self._parts.hosts, before, after, strict=True):
            clock = first.until(last)
            sent = fetched(self._parts, host, place, clock)
            asked_ns = start_ns + first.offset_ns
            hosts.append(
                HostPart(
                    name=host.name,
                    first=host.first,
                    workers=host.workers,
                    offset_ns=clock.offset_ns,
                    error_ns=clock.error_ns,
                    late_ns=max(report["start_ns"] for report in sent.reports) - asked_ns,
                    machine=sent.machine,
                )
            )
            reports += [shifted(report, -clock.offset_ns) for report in sent.reports]
        return reports, hosts


def refuse_unfit(workload: Workload, hosts: Sequence[Host]) -> None:
    """Refuse what these hosts cannot send together.

    Raises
    ------
    ParameterError
        It needs files that only this host has, or has too few users.
    """
    problems = []
    if isinstance(workload.arrivals, Scripted) or isinstance(workload.request.body, FileBody):
        problems.append("scripts and bodies of files are not sent from several hosts")
    if workload.ca_file or workload.certificate:
        problems.append("files of certificates need not be on the hosts")
    users, least = getattr(workload.arrivals, "users", None), hosts[-1].first + 1
    if users is not None and users < least:
        problems.append(
            f"{users} users are too few for {len(hosts)} hosts, of which each must have one: give "
            f"at least {least}, or fewer --workers for each host"
        )
    if problems:
        raise ParameterError("perflab load", problems)


def _nothing() -> None:
    """Check nothing."""
