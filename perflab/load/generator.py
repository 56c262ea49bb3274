"""The generator: worker processes on the client's cores, a common start, one merged record."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from perflab.errors import LoadError
from perflab.load.columns import read
from perflab.load.workload import Workload, refuse_foreign
from perflab.paths import project_root

START_DELAY_NS = 30_000_000


@dataclass(frozen=True)
class LoadResult:
    """What one trial's load left: every request, and what the workers know of themselves.

    ``begin_ns`` and ``end_ns`` are the first and the last planned instant of the measure stage,
    between which all users were active; ``cpu_ns`` is the workers' CPU in between;
    ``loop_delay_ms`` how late their event loops woke; ``unsent`` the requests of the
    quota that were never sent.
    """

    requests: pd.DataFrame
    begin_ns: int
    end_ns: int
    cpu_ns: int
    loop_delay_ms: tuple[float, ...]
    unsent: int
    cores: int


class _Worker:
    def __init__(self, core: int, environment: dict[str, str]) -> None:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})
        try:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "perflab.load.worker"],
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
        self.finished = 0

    def order(self, words: dict[str, Any]) -> None:
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(json.dumps(words).encode() + b"\n")
        except BrokenPipeError:
            raise LoadError("a load worker has died") from None

    def messages(self) -> list[dict[str, Any]]:
        """Return the complete messages that have arrived; an empty read means it died."""
        assert self.child.stdout is not None
        arrived = os.read(self.child.stdout.fileno(), 1 << 20)
        if not arrived:
            raise LoadError(f"a load worker died (exit status {self.child.wait()})")
        *lines, self._pending = (self._pending + arrived).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Close its pipe, and end it if that is not enough."""
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
    """

    def __init__(self, cores: Sequence[int], environment: dict[str, str]) -> None:
        self._cores = tuple(cores)
        self._environment = environment
        self._workers: list[_Worker] = []

    @property
    def pids(self) -> list[int]:
        """Return the workers' process ids."""
        return [worker.child.pid for worker in self._workers]

    def start(self) -> None:
        """Start the workers and wait until they are ready."""
        self._workers = [_Worker(core, self._environment) for core in self._cores]
        self._collect("ready", time.monotonic() + 60, lambda _: None, lambda: None)

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.close()
        self._workers = []

    def run(
        self,
        workload: Workload,
        address: str,
        on_progress: Callable[[int], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
    ) -> LoadResult:
        """Send a workload to ``http://host:port`` and return its record.

        Parameters
        ----------
        on_progress : callable
            Receives the number of measured requests finished so far.
        check : callable
            Called about four times a second; what it raises ends the load.

        Raises
        ------
        TargetRefused
            The address is not on this machine.
        LoadError
            A worker died or did not end within the workload's own bounds.
        """
        refuse_foreign(address)
        arrivals = workload.arrivals
        folder = Path(tempfile.mkdtemp(prefix="perflab-load-"))
        try:
            for number, words in enumerate(self._orders(workload, address, folder)):
                self._workers[number].order(words)
            bound_s = 2 * (arrivals.max_duration_s + arrivals.timeout_s) + 10
            reports = self._collect("done", time.monotonic() + bound_s, on_progress, check)
            frames = [read(folder / str(n), n) for n in range(len(self._workers))]
        except BaseException:
            # Workers with half an order cannot be used again.
            self.close()
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return _merged(frames, reports, len(self._cores))

    def _orders(self, workload: Workload, address: str, folder: Path) -> list[dict[str, Any]]:
        arrivals = workload.arrivals
        count = len(self._workers)
        start_ns = time.monotonic_ns() + START_DELAY_NS
        return [
            {
                "workload": workload.model_dump(),
                "url": address + workload.request.path,
                "users": list(range(number, arrivals.users, count)),
                "quota": {
                    "warmup": _share(arrivals.warmup_requests, number, count),
                    "measure": _share(arrivals.requests, number, count),
                },
                "folder": str(folder / str(number)),
                "start_ns": start_ns,
            }
            for number in range(count)
        ]

    def _collect(
        self,
        wanted: str,
        deadline: float,
        on_progress: Callable[[int], None],
        check: Callable[[], None],
    ) -> list[dict[str, Any]]:
        reports: dict[int, dict[str, Any]] = {}
        with selectors.DefaultSelector() as selector:
            for number, worker in enumerate(self._workers):
                assert worker.child.stdout is not None
                selector.register(worker.child.stdout, selectors.EVENT_READ, number)
            while len(reports) < len(self._workers):
                if time.monotonic() > deadline:
                    raise LoadError("the load workers did not end within the bounds of their load")
                for key, _ in selector.select(timeout=0.25):
                    worker = self._workers[key.data]
                    for message in worker.messages():
                        self._take(message, key.data, worker, wanted, reports)
                    on_progress(sum(worker.finished for worker in self._workers))
                check()
        for worker in self._workers:
            worker.finished = 0
        return [reports[number] for number in range(len(self._workers))]

    @staticmethod
    def _take(
        message: dict[str, Any],
        number: int,
        worker: _Worker,
        wanted: str,
        reports: dict[int, dict[str, Any]],
    ) -> None:
        if message["event"] == wanted:
            reports[number] = message
        elif message["event"] == "failed":
            raise LoadError(f"a load worker failed: {message['reason']}")
        elif message["event"] == "progress":
            worker.finished = message["finished"]


def _share(total: int, number: int, count: int) -> int:
    return total // count + (number < total % count)


def _merged(frames: list[pd.DataFrame], reports: list[dict[str, Any]], cores: int) -> LoadResult:
    requests = pd.concat(frames, ignore_index=True)
    delays = tuple(delay for report in reports for delay in report["loop_delay_ms"])
    return LoadResult(
        requests=requests.sort_values("planned_ns", kind="stable", ignore_index=True),
        begin_ns=max(report["begin_ns"] for report in reports),
        end_ns=min(report["end_ns"] for report in reports),
        cpu_ns=sum(report["cpu_ns"] for report in reports),
        loop_delay_ms=delays,
        unsent=sum(report["unsent"] for report in reports),
        cores=cores,
    )
