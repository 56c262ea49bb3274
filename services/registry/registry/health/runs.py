"""Runs of the workload: one at a time, in the background, the last ones kept."""

from __future__ import annotations

import asyncio
import logging
import resource
import secrets
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp

from registry.health.downloading import WAITING, Budget, Download, download
from registry.health.refusal import Stopping, UnknownRun, WorkloadRunning
from registry.health.summary import progress, summarize
from registry.health.workload import MOST_BYTES, Workload

KEPT = 20
# Of this process: both ends of each download, what each has open behind, and the rest.
FILES_PER_CLIENT, SPARE_FILES = 3, 200
RUNNING, COMPLETED, CANCELLED, FAILED = "running", "completed", "cancelled", "failed"
log = logging.getLogger(__name__)


@dataclass
class Run:
    """One run of a workload, with every download of it."""

    run_id: str
    workload: Workload
    downloads: list[Download]
    status: str = RUNNING
    problem: str = ""
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    begin_ns: int = field(default_factory=time.monotonic_ns)
    end_ns: int = 0

    @property
    def elapsed_s(self) -> float:
        """Time since its begin, or to its end."""
        return ((self.end_ns or time.monotonic_ns()) - self.begin_ns) / 1e9

    def shown(self) -> dict[str, object]:
        """Return how far it is; once it has ended, also its results."""
        shown: dict[str, object] = {
            "run_id": self.run_id,
            "status": self.status,
            "workload": self.workload.model_dump(),
            "load_from": "service_process",
            "started_at": self.started_at,
            "elapsed_s": round(self.elapsed_s, 6),
            "progress": progress(self.downloads),
        }
        if self.problem:
            shown["problem"] = self.problem
        if self.status != RUNNING:
            shown["results"] = {
                **summarize(self.downloads, self.elapsed_s),
                "requests": [
                    each.shown(client, self.begin_ns) for client, each in enumerate(self.downloads)
                ],
            }
        return shown


class Runs:
    """All runs that are kept; their only target is this service itself, on loopback."""

    def __init__(self, port: int, version: str, most_bytes: int = MOST_BYTES) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._version = version
        self._most_bytes = most_bytes
        self._kept: dict[str, Run] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self, workload: Workload) -> Run:
        """Start a workload in the background; it goes on when whoever asked for it is gone.

        Raises
        ------
        WorkloadRunning
            Another is under way.
        Stopping
            The service is about to end.
        """
        if self._is_closed:
            raise Stopping("the service stops: start the workload again once it is back")
        for each in self._kept.values():
            if each.status == RUNNING:
                reason = f"run {each.run_id} is under way: wait for its end, then start again"
                raise WorkloadRunning(reason, run_id=each.run_id)
        run = Run(secrets.token_hex(8), workload, [Download() for _ in range(workload.num_clients)])
        while len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[run.run_id] = run
        self._task = asyncio.create_task(self._work(run), name=f"workload {run.run_id}")
        return run

    def get(self, run_id: str) -> Run:
        """Return a run.

        Raises
        ------
        UnknownRun
            It is none of this process, or its results are no longer kept.
        """
        try:
            return self._kept[run_id]
        except KeyError:
            raise UnknownRun(
                f"no such run since the service started, or one before the last {KEPT}"
            ) from None

    async def close(self) -> None:
        """Cancel what is under way and start nothing any more."""
        self._is_closed = True
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self, run: Run) -> None:
        try:
            allow_files(FILES_PER_CLIENT * run.workload.num_clients + SPARE_FILES)
            run.begin_ns = time.monotonic_ns()
            await self._download_all(run)
            run.status = COMPLETED
        except asyncio.CancelledError:
            run.status = CANCELLED
            raise
        except Exception as error:  # else it would be said nowhere, and the run never end
            log.exception("workload %s failed", run.run_id)
            run.status, run.problem = FAILED, f"{type(error).__name__}: {error}"
        finally:
            run.end_ns = time.monotonic_ns()
            for each in run.downloads:
                if each.outcome == WAITING:  # it had not even begun
                    each.outcome, each.start_ns, each.end_ns = CANCELLED, run.end_ns, run.end_ns

    async def _download_all(self, run: Run) -> None:
        """Start all clients at once, as published: each is a coroutine of this event loop."""
        path, budget = run.workload.path(self._version), Budget(self._most_bytes)
        deadline_s = asyncio.get_running_loop().time() + run.workload.duration_seconds
        async with aiohttp.ClientSession(
            self._base,
            # Its own default would let 100 in and have the others wait.
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        ) as session:
            await asyncio.gather(
                *(download(session, path, deadline_s, budget, into) for into in run.downloads)
            )


def allow_files(wanted: int) -> None:
    """Raise this process's limit on open files, as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
