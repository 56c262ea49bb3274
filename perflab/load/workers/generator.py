"""The generator: worker processes on the client's cores, a common start, one merged record."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from perflab.errors import LoadError
from perflab.host.processes import bound_to, give_way, how_it_ended
from perflab.host.temporary_folders import temporary_folder
from perflab.load.checks.machine_counts import MachineCounts
from perflab.load.clients.outcome import MEASURE
from perflab.load.clients.targets import refuse_foreign
from perflab.load.records.columns import rows_since
from perflab.load.records.failure_stop import is_failure
from perflab.load.records.record import RAW_ROWS, merged
from perflab.load.records.result import LoadResult
from perflab.load.workload.workload import StopRules, Workload
from perflab.paths import project_root

START_DELAY_NS = 50_000_000
# The time for scripts and connections to end, and rows to be written, after requests are given up.
ENDING_S = 30.0
NEVER = StopRules()


class StopLoad(Exception):
    """A check raises it to end a load in order; the record is kept.

    With ``within_s``, requests under way are given up after that time; else they have their full
    timeout.
    """

    def __init__(self, reason: str, within_s: float | None = None) -> None:
        super().__init__(reason)
        self.within_s = within_s


@dataclass(frozen=True)
class Progress:
    """The state of a running load: requests so far, and those under way."""

    finished: int = 0
    measured: int = 0
    failed: int = 0
    in_flight: int = 0


class WorkerProcess:
    """A worker as its parent sees it: a child process on one core that carries out orders."""

    def __init__(self, core: int, environment: dict[str, str]) -> None:
        """Start the worker; it inherits the core, to which this process is bound meanwhile."""
        with bound_to({core}):
            self.child = subprocess.Popen(
                [sys.executable, "-m", "perflab.load.workers.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                cwd=project_root(),
                env={**os.environ, **environment},
                bufsize=0,
            )
        self._pending = bytearray()
        self._folder = Path()
        self.progress = Progress()

    def order(self, words: dict[str, Any]) -> None:
        """Send the worker an order; raise LoadError if it has died."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(json.dumps(words).encode() + b"\n")
        except BrokenPipeError:
            raise LoadError(f"a load worker has died (pid {self.child.pid})") from None

    def begin(self, words: dict[str, Any], folder: Path) -> None:
        """Order a load whose rows go into a folder; raise like :meth:`order`."""
        self._folder, self.progress = folder, Progress()
        self.order({**words, "folder": str(folder)})

    def update(self, in_flight: int) -> None:
        """Count the requests that the worker has recorded since the last time."""
        rows, last = rows_since(self._folder, self.progress.finished), self.progress
        self.progress = Progress(
            finished=last.finished + len(rows),
            measured=last.measured + int((rows["stage"] == MEASURE).sum()),
            failed=last.failed + int(is_failure(rows["error"]).sum()),
            in_flight=in_flight,
        )

    def messages(self) -> list[dict[str, Any]]:
        """Return the complete messages that have arrived; raise LoadError if the worker died."""
        assert self.child.stdout is not None
        arrived = os.read(self.child.stdout.fileno(), 1 << 20)
        if not arrived:
            ended = how_it_ended(self.child.wait())
            raise LoadError(f"a load worker died (pid {self.child.pid}): it {ended}")
        self._pending += arrived
        if b"\n" not in arrived:
            return []
        *lines, self._pending = self._pending.split(b"\n")
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
    """Keeps one worker, bound to its core, for each of the client's ``cores`` for the whole run.

    ``environment`` holds labels, so that clean-up finds the workers. With ``real_time`` they get
    real-time priority where the system allows it. That is not for cores that services share: they
    would get no time while a worker is busy.
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
        _collect(self._workers, "ready", time.monotonic() + 60)

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

        ``on_progress`` and ``check`` are called about four times a second. An exception of
        ``check`` ends the load; ``StopLoad`` ends it in order, and the record is returned. A later
        ``StopLoad`` can only shorten the time for requests under way.
        ``allowed`` are the hosts besides loopback that the user named. Workers write their raw rows
        to ``folder``, which is kept, or to a temporary folder. ``start_ns`` is the planned start
        (CLOCK_MONOTONIC), so that the windows of several loads fit together; 0 is at once. It is
        never moved: missed windows show as requests that started late, and refuse the load.

        Raises TargetRefused for an address that is neither on this machine nor allowed, and
        LoadError where a worker died or did not end within the workload's own bounds.
        """
        refuse_foreign(address, allowed)
        if workload.client == "http2":
            from perflab.load.clients.http2_client import ask_for_http2

            ask_for_http2(address, workload)
        # Workers run in another folder: the path must not be relative.
        place = folder.resolve() if folder else temporary_folder(RAW_ROWS)
        # Each worker that sends has a connection.
        workers = self._workers[: workload.connections.most or None]
        machine = MachineCounts.now(self._cores[: len(workers)])
        start_ns = start_ns or time.monotonic_ns() + START_DELAY_NS
        try:
            self._begin(workers, workload, address, place, allowed, start_ns)
            ahead_s = max(0, start_ns - time.monotonic_ns()) / 1e9
            bound_s = ahead_s + workload.bound_s + 2 * workload.timeout_s + 30
            # On few cores this process shares the client's, and a scheduler may let it run for a
            # millisecond before the client is woken. At idle priority it gives way at once; a
            # thread of its own takes that priority, because there is no way back from it.
            with ThreadPoolExecutor(1, initializer=give_way) as watcher:
                reports = watcher.submit(
                    _collect,
                    workers,
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
        workers: Sequence[WorkerProcess],
        workload: Workload,
        address: str,
        folder: Path,
        allowed: Sequence[str],
        start_ns: int,
    ) -> None:
        """Order each worker to send its part of a load and to record it in its own folder."""
        sent = workload.with_credentials()
        order = {
            "workload": sent.model_dump(mode="json"),
            "url": address,
            "workers": len(workers),
            "allowed": list(allowed),
            "start_ns": start_ns,
            "real_time": self._real_time,
        }
        for number, worker in enumerate(workers):
            worker.begin({**order, "worker": number}, folder / str(number))


def _stop(workers: Sequence[WorkerProcess], reason: str, within_s: float | None = None) -> None:
    for worker in workers:
        worker.order({"stop": reason, "within_s": within_s})


def _collect(
    workers: Sequence[WorkerProcess],
    event: str,
    deadline: float,
    on_progress: Callable[[Progress], None] = lambda _: None,
    check: Callable[[], None] = lambda: None,
    rules: StopRules = NEVER,
) -> list[dict[str, Any]]:
    reports: dict[int, dict[str, Any]] = {}
    left, is_stopped, within_s = rules.failures, False, math.inf
    with selectors.DefaultSelector() as selector:
        for number, worker in enumerate(workers):
            assert worker.child.stdout is not None
            selector.register(worker.child.stdout, selectors.EVENT_READ, number)
        while len(reports) < len(workers):
            if time.monotonic() > deadline:
                raise LoadError(
                    "the load workers did not end in the time of their load: start it again"
                )
            news = False
            for key, _ in selector.select(timeout=0.25):
                worker = workers[key.data]
                for message in worker.messages():
                    if message["event"] == event:
                        reports[key.data] = message
                    elif message["event"] == "failed":
                        raise LoadError(f"a load worker failed: {message['reason']}")
                    elif message["event"] == "progress":
                        worker.update(message["in_flight"])
                        news = True
            if news:
                progress = _progress(workers)
                on_progress(progress)
                if 0 < left <= progress.failed:
                    _stop(workers, rules.failures_reached)
                    left = 0
            try:
                check()
            except StopLoad as stop:
                is_sooner = stop.within_s is not None and stop.within_s < within_s
                if is_sooner or not is_stopped:
                    _stop(workers, str(stop), stop.within_s)
                if stop.within_s is not None and is_sooner:
                    within_s = stop.within_s
                    deadline = min(deadline, time.monotonic() + within_s + ENDING_S)
                is_stopped = True
    return [reports[number] for number in range(len(workers))]


def _progress(workers: Sequence[WorkerProcess]) -> Progress:
    """Return the sums over all workers."""
    parts = [astuple(worker.progress) for worker in workers]
    return Progress(*map(sum, zip(*parts, strict=True)))
