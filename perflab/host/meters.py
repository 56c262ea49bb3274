"""Meters: CPU time and memory of a container, a process tree, or a host core.

CPU time is cumulative, so a lost sample costs resolution and no accuracy.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd

from perflab.errors import StackError
from perflab.host.memory import held_bytes

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
GROUPS = Path("/sys/fs/cgroup")
INTERVAL_S, JOB_TIMEOUT_S = 0.05, 10.0


@dataclass(frozen=True)
class Reading:
    """Cumulative CPU time in ns and resident memory in bytes (0 = not measured)."""

    cpu_ns: int
    memory_bytes: int


class Meter(Protocol):
    """Anything whose CPU and memory can be read."""

    def read(self, table: ProcessTable) -> Reading | None:
        """Return a reading, or None when the subject has ended."""

    def held_bytes(self, table: ProcessTable) -> int:
        """Return the memory that the subject holds, shared pages in parts; not under load.

        Raises OSError where that is not known.
        """

    def members(self, table: ProcessTable) -> list[int]:
        """Return the subject's living processes, as this host numbers them."""


class ProcessTable:
    """One scan of ``/proc``, shared by all meters of a sample."""

    def __init__(self) -> None:
        self.parent: dict[int, int] = {}
        self.reaped_ns: dict[int, int] = {}
        self._children: dict[int, list[int]] = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                self._read(int(entry))

    def _read(self, pid: int) -> None:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return
        parent = int(fields[1])
        self.parent[pid] = parent
        self.reaped_ns[pid] = (int(fields[13]) + int(fields[14])) * TICK_NS
        self._children.setdefault(parent, []).append(pid)

    def tree(self, root: int) -> list[int]:
        """Return a process and all its living descendants."""
        if root not in self.parent:
            return []
        members = [root]
        for pid in members:
            members.extend(self._children.get(pid, ()))
        return members


def process_cpu_ns(pid: int) -> int:
    """Return the CPU time (ns) of a process, with all threads that it ever had, by its CPU clock.

    ``/proc/<pid>/stat`` counts in ticks of 10 ms. Source: clock_getcpuclockid(3).
    """
    return time.clock_gettime_ns((~pid << 3) | 2)


class ProcessTreeMeter:
    """CPU and memory of processes and their descendants.

    The kernel adds the time of ended descendants to their parent's account of reaped children.
    """

    def __init__(self, *roots: int) -> None:
        self._roots = roots
        self._highest = 0

    def members(self, table: ProcessTable) -> list[int]:
        """Return the processes and their descendants."""
        return list(dict.fromkeys(pid for root in self._roots for pid in table.tree(root)))

    def read(self, table: ProcessTable) -> Reading | None:
        """Return a reading, or None when all root processes are gone."""
        members = self.members(table)
        if not members:
            return None
        cpu = private_pages = shared_pages = 0
        for pid in members:
            with suppress(OSError):
                cpu += process_cpu_ns(pid) + table.reaped_ns[pid]
                with open(f"/proc/{pid}/statm", "rb") as file:
                    _, resident, shared, *_ = map(int, file.read().split())
                private_pages += resident - shared
                # Shared pages count once per tree.
                shared_pages = max(shared_pages, shared)
        # Between a child's end and its reaping, neither account has its time.
        self._highest = max(self._highest, cpu)
        return Reading(self._highest, (private_pages + shared_pages) * PAGE_BYTES)

    def held_bytes(self, table: ProcessTable) -> int:
        """Return the memory of all processes together."""
        return held_bytes(self.members(table))


def groups_of(pid: int | str) -> Mapping[str, str]:
    """Return the control groups of a process: controller ('' is version 2) to path.

    Raises OSError where the process is gone. Source: the kernel's cgroup-v2.rst.
    """
    groups: dict[str, str] = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def folder_of(groups: Mapping[str, str], controller: str) -> Path | None:
    """Return a group's folder under a controller of version 1; None without such a controller."""
    if controller not in groups:
        return None
    names = (controller, f"cpu,{controller}")
    mounted = [name for name in names if (GROUPS / name).is_dir()]
    return GROUPS / (mounted or [controller])[0] / groups[controller].lstrip("/")


class CgroupMeter:
    """CPU and memory of a container, from the control group (version 1 or 2) of its process.

    Memory is what is charged to the group less the file cache that nobody uses, as ``docker stats``
    has it: the kernel frees that cache when memory is short. Source: docker/cli,
    cli/command/container/stats_helpers.go.

    Raises OSError where the process is gone or its group cannot be read.
    """

    def __init__(self, pid: int) -> None:
        groups = groups_of(pid)
        accounts = folder_of(groups, "cpuacct")
        self._is_first_version = accounts is not None
        self._folder = accounts or GROUPS / groups.get("", "/").lstrip("/")
        self._cpu = self._folder / ("cpuacct.usage" if accounts else "cpu.stat")
        self._memory, self._unused = self._folder / "memory.current", b"inactive_file"
        if accounts:
            self._memory = (folder_of(groups, "memory") or accounts) / "memory.usage_in_bytes"
            self._unused = b"total_inactive_file"
        self._has_memory = self._memory.exists()
        self._cpu.read_bytes()

    def members(self, table: ProcessTable) -> list[int]:  # noqa: ARG002
        """Return the processes of the group; none when it is gone."""
        try:
            return [int(line) for line in (self._folder / "cgroup.procs").read_text().split()]
        except OSError:
            return []

    def held_bytes(self, table: ProcessTable) -> int:  # noqa: ARG002
        """Return the memory of the group."""
        charged = int(self._memory.read_bytes())
        parts = map(bytes.split, self._memory.with_name("memory.stat").read_bytes().splitlines())
        unused = next((int(value) for name, value in parts if name == self._unused), 0)
        return max(0, charged - unused)

    def read(self, table: ProcessTable) -> Reading | None:
        """Return a reading, or None when the group is gone."""
        try:
            used = self._cpu.read_bytes()
            memory = self.held_bytes(table) if self._has_memory else 0
        except OSError:
            return None
        return Reading(int(used) if self._is_first_version else int(used.split()[1]) * 1000, memory)


@dataclass(frozen=True)
class CoreTimes:
    """Busy and stolen time of one host core, cumulative, in ns."""

    busy_ns: int
    steal_ns: int


def core_times() -> dict[int, CoreTimes]:
    """Return the times of every core from ``/proc/stat`` (resolution 10 ms)."""
    times = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
            busy = (user + nice + system + irq + softirq) * TICK_NS
            times[int(name[3:])] = CoreTimes(busy, steal * TICK_NS)
    return times


class Repeated:
    """Does a job every ``interval_s`` in a thread until ``stop``; with ``at_end``, once more."""

    def __init__(self, job: Callable[[], None], interval_s: float, *, at_end: bool = False) -> None:
        self._job = job
        self._at_end = at_end
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the job that is under way; raise the error of a job that failed.

        Raises StackError where that job does not end: its thread is left alone.
        """
        self._ended.set()
        self._thread.join(timeout=JOB_TIMEOUT_S)
        if self._thread.is_alive():
            text = f"a reading during the load did not end within {JOB_TIMEOUT_S:g} s"
            raise StackError(text)
        if self._error is not None:
            raise self._error
        if self._at_end:
            self._job()

    def _repeat(self) -> None:
        due = time.monotonic()
        while not self._ended.is_set():
            try:
                self._job()
            except Exception as error:
                self._error = error
                return
            # Keep to the grid, and skip the instants that a slow job has missed.
            due = max(due + self._interval_s, time.monotonic())
            self._ended.wait(due - time.monotonic())


class Sampler(Repeated):
    """Samples CPU and memory of services, by name, of load workers (``client``) and of the lab.

    Instants are CLOCK_MONOTONIC, the clock of the requests, right before each reading.
    """

    def __init__(self, meters: Mapping[str, Meter], client_pids: Sequence[int]) -> None:
        super().__init__(self._sample, INTERVAL_S, at_end=True)
        self._meters = meters
        self._client_pids = client_pids
        self._samples: list[tuple[int, str, int, int]] = []

    def _sample(self) -> None:
        table = ProcessTable()
        for name, meter in self._meters.items():
            now = time.monotonic_ns()
            reading = meter.read(table)
            if reading is not None:
                self._samples.append((now, name, reading.cpu_ns, reading.memory_bytes))
        self._sample_cpu("client", self._client_pids)
        self._sample_cpu("lab", [os.getpid()])
        now = time.monotonic_ns()
        for core, times in core_times().items():
            self._samples.append((now, f"core {core}", times.busy_ns, 0))

    def _sample_cpu(self, name: str, pids: Sequence[int]) -> None:
        now = time.monotonic_ns()
        with suppress(OSError):
            self._samples.append((now, name, sum(process_cpu_ns(pid) for pid in pids), 0))

    def samples(self) -> pd.DataFrame:
        """Return t_ns, service, cpu_ns (cumulative) and memory_bytes."""
        frame = pd.DataFrame(self._samples, columns=["t_ns", "service", "cpu_ns", "memory_bytes"])
        return frame.astype({"t_ns": "int64", "cpu_ns": "int64", "memory_bytes": "int64"})
