"""The generator: worker processes on the client's cores, a common start, one merged record."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from perflab.errors import LoadError
from perflab.host.processes import give_way, how_it_ended
from perflab.load.checks.machine_counts import MachineCounts
from perflab.load.clients.outcome import CENSORED_CODES, MEASURE
from perflab.load.clients.targets import refuse_foreign
from perflab.load.records.columns import bin_ms, latency_counts, rows_since
from perflab.load.records.looks import is_failure
from perflab.load.records.merging import merged
from perflab.load.records.record import raw_folder
from perflab.load.records.result import LoadResult
from perflab.load.workload.workload import StopRules, Workload
from perflab.paths import project_root


class StopLoad(Exception):
    """A check raises it to end a load in order; the record is kept.

    With ``within_s``, requests under way are given up after that time; else they have their full
    timeout.
    """

    def __init__(self, reason: str, within_s: float | None = None) -> None:
        super().__init__(reason)
        self.within_s = within_s


@dataclass
class Progress:
    """The state of a running load; ``counts`` is a histogram since the last reading."""

    finished: int = 0
    measured: int = 0
    failed: int = 0
    in_flight: int = 0
    counts: Counter[int] = field(default_factory=Counter)

    @classmethod
    def total(cls, parts: Iterable[Progress]) -> Progress:
        """Add the workers' reports up."""
        total = cls()
        for part in parts:
            total.finished += part.finished
            total.measured += part.measured
            total.failed += part.failed
            total.in_flight += part.in_flight
            total.counts += part.counts
        return total


def percentile_ms(counts: Mapping[int, int], percentile: float) -> float:
    """Return a percentile of a histogram of ``columns.latency_counts``, within 0.6%."""
    if not counts:
        return float("nan")
    numbers = sorted(counts)
    cumulative = np.cumsum([counts[number] for number in numbers])
    return bin_ms(numbers[int(np.searchsorted(cumulative, percentile / 100 * cumulative[-1]))])


class RowFollower:
    """Follows the rows of one worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._finished = self._failed = self._measured = 0

    def read(self, in_flight: int) -> Progress:
        """Return the sums so far, with the response times since the last reading."""
        rows = rows_since(self._folder, self._finished)
        good = rows["error"] == 0
        self._finished += len(rows)
        self._failed += int(is_failure(rows["error"]).sum())
        self._measured += int((rows["stage"] == MEASURE).sum())
        # The time of a timed-out request is a lower bound.
        known = good | np.isin(rows["error"], CENSORED_CODES)
        times = rows["done_ns"][known] - rows["planned_ns"][known]
        counts = Counter(latency_counts(times))
        return Progress(self._finished, self._measured, self._failed, in_flight, counts)


START_DELAY_NS = 50_000_000
# The time for scripts and connections to end, and rows to be written, after requests are given up.
ENDING_S = 30.0
NEVER = StopRules()


class WorkerProcess:
    """A child process on one core that carries out orders."""

    def __init__(self, core: int, environment: dict[str, str]) -> None:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})
        try:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "perflab.load.workers.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                cwd=project_root(),
                env={**os.environ, **environment},
                bufsize=0,
            )
        finally:
            os.sched_setaffinity(0, before)
        self._pending = b""
        self.progress = Progress()
        self.follower: RowFollower | None = None

    def order(self, words: dict[str, Any]) -> None:
        """Send the worker an order; raise LoadError if it has died."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(json.dumps(words).encode() + b"\n")
        except BrokenPipeError:
            raise LoadError(f"a load worker has died (pid {self.child.pid})") from None

    def messages(self) -> list[dict[str, Any]]:
        """Return the complete messages that have arrived; raise LoadError if the worker died."""
        assert self.child.stdout is not None
        arrived = os.read(self.child.stdout.fileno(), 1 << 20)
        if not arrived:
            ended = how_it_ended(self.child.wait())
            raise LoadError(f"a load worker died (pid {self.child.pid}): it {ended}")
        *lines, self._pending = (self._pending + arrived).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Close the worker's pipes; kill it if it does not end."""
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self.child.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Generator:
    """Keeps one worker per client core for the whole run.

    Parameters
    ----------
    cores : sequence of int
        Cores of the client; one worker is bound to each.
    environment : dict
        Labels, so that clean-up finds the workers.
    real_time : bool
        Whether workers get real-time priority on their cores, where the system allows it. Not for
        cores that services share: they would get no time while a worker is busy.
    """

    def __init__(
        self, cores: Sequence[int], environment: dict[str, str], real_time: bool = True
    ) -> None:
        self._cores = tuple(cores)
        self._real_time = real_time
        self._environment = environment
        self._workers: list[WorkerProcess] = []

    @property
    def pids(self) -> list[int]:
        """Return the workers' process ids."""
        return [worker.child.pid for worker in self._workers]

    def start(self) -> None:
        """Start the workers and wait until they are ready."""
        self._workers = [WorkerProcess(core, self._environment) for core in self._cores]
        self._collect("ready", time.monotonic() + 60)

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.close()
        self._workers = []

    def run(
        self,
        workload: Workload,
        address: str,
        on_progress: Callable[[Progress], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
        allowed: Sequence[str] = (),
        folder: Path | None = None,
        start_ns: int = 0,
    ) -> LoadResult:
        """Send a workload to ``http://host:port`` and return its record.

        Parameters
        ----------
        on_progress : callable
            Receives the sums over all workers, about four times a second.
        check : callable
            Called about four times a second; an exception ends the load. ``StopLoad`` ends it in
            order, and the record is returned.
        allowed : sequence of str
            Hosts besides loopback that the user named for this run.
        folder : Path, optional
            Where workers write their raw rows; by default a temporary folder. A given folder is
            kept, also when the load fails.
        start_ns : int
            The planned start (CLOCK_MONOTONIC), so that the windows of several loads fit together;
            0: at once. A start that is over when the workers get their orders is not moved: missed
            windows show as requests that started late, and refuse the load.

        Raises
        ------
        TargetRefused
            The address is neither on this machine nor allowed.
        LoadError
            A worker died or did not end within the workload's own bounds.
        """
        refuse_foreign(address, allowed)
        if workload.client == "http2":
            from perflab.load.clients.httpx_client import ask_for_http2

            ask_for_http2(address, workload)
        # Workers run in another folder: the path must not be relative.
        place = folder.resolve() if folder else raw_folder()
        machine = MachineCounts.now(self._cores)
        start_ns = start_ns or time.monotonic_ns() + START_DELAY_NS
        try:
            self._begin(workload, address, place, allowed, start_ns)
            ahead_s = max(0, start_ns - time.monotonic_ns()) / 1e9
            bound_s = ahead_s + workload.bound_s + 2 * workload.timeout_s + 30
            # On few cores this process shares the client's, and a scheduler may let it run for a
            # millisecond before the client is woken. At idle priority it gives way at once; a
            # thread of its own takes that priority, because there is no way back from it.
            with ThreadPoolExecutor(1, initializer=give_way) as watcher:
                reports = watcher.submit(
                    self._collect,
                    "done",
                    time.monotonic() + bound_s,
                    on_progress,
                    check,
                    workload.stop,
                ).result()
        except BaseException:
            # Workers in the middle of an order cannot be used again.
            self.close()
            if folder is None:
                shutil.rmtree(place, ignore_errors=True)
            raise
        return merged(place, reports, workload, machine, start_ns)

    def _begin(
        self,
        workload: Workload,
        address: str,
        folder: Path,
        allowed: Sequence[str],
        start_ns: int,
    ) -> None:
        """Order every worker to send its part of a load to ``address`` from ``start_ns`` on.

        Each writes its rows into a folder of its own below ``folder``. ``allowed`` are the hosts
        beside loopback that the user named as targets.
        """
        order = {
            "workload": workload.model_dump(mode="json"),
            "url": address,
            "workers": len(self._workers),
            "allowed": list(allowed),
            "start_ns": start_ns,
            "real_time": self._real_time,
        }
        for number, worker in enumerate(self._workers):
            worker.progress = Progress()
            worker.follower = RowFollower(folder / str(number))
            worker.order({**order, "worker": number, "folder": str(folder / str(number))})

    def _stop(self, reason: str, within_s: float | None = None) -> None:
        for worker in self._workers:
            worker.order({"stop": reason, "within_s": within_s})

    def _collect(
        self,
        event: str,
        deadline: float,
        on_progress: Callable[[Progress], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
        rules: StopRules = NEVER,
    ) -> list[dict[str, Any]]:
        reports: dict[int, dict[str, Any]] = {}
        left = rules.failures
        with selectors.DefaultSelector() as selector:
            for number, worker in enumerate(self._workers):
                assert worker.child.stdout is not None
                selector.register(worker.child.stdout, selectors.EVENT_READ, number)
            while len(reports) < len(self._workers):
                if time.monotonic() > deadline:
                    raise LoadError("the load workers did not end within the bounds of their load")
                news = False
                for key, _ in selector.select(timeout=0.25):
                    worker = self._workers[key.data]
                    for message in worker.messages():
                        news |= self._take(message, key.data, worker, event, reports)
                if news:
                    progress = self._progress()
                    on_progress(progress)
                    if 0 < left <= progress.failed:
                        self._stop(rules.failures_reached)
                        left = 0
                try:
                    check()
                except StopLoad as stop:
                    self._stop(str(stop), stop.within_s)
                    if stop.within_s is not None:
                        deadline = min(deadline, time.monotonic() + stop.within_s + ENDING_S)
                    check = _nothing
        return [reports[number] for number in range(len(self._workers))]

    def _progress(self) -> Progress:
        """Return the sums over all workers, with the response times since the last call."""
        progress = Progress.total(worker.progress for worker in self._workers)
        for worker in self._workers:
            worker.progress.counts.clear()
        return progress

    @staticmethod
    def _take(
        message: dict[str, Any],
        number: int,
        worker: WorkerProcess,
        event: str,
        reports: dict[int, dict[str, Any]],
    ) -> bool:
        """Take one message; return whether it reports progress."""
        if message["event"] == event:
            reports[number] = message
        elif message["event"] == "failed":
            raise LoadError(f"a load worker failed: {message['reason']}")
        elif message["event"] == "progress" and worker.follower is not None:
            waiting = worker.progress.counts
            worker.progress = worker.follower.read(message["in_flight"])
            worker.progress.counts += waiting
            return True
        return False


def _nothing() -> None:
    """Check nothing."""
