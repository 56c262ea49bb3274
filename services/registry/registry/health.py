"""The health side: the service downloads from itself.

The load runs in the service's own process, on the event loop that also serves the downloads, as the
published load generator may have done. What holds that loop up holds the clients up too, and their
instants are those at which the loop came round to them: the numbers are a specimen, to be compared
with those of a client outside, which are the truth.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from statistics import fmean
from typing import Annotated

import aiohttp
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from specimen.refusal import Refused

WORKLOAD = "/health/performance/workload"
RESULTS = "/health/performance/results/"
VERSION = "main"
# An owner and a name, as published, or a name alone; no part begins with a dot.
_PART = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
RUNNING, COMPLETED, FAILED = "running", "completed", "failed"
DONE, TIMED_OUT, REFUSED, BROKEN = "done", "timed_out", "refused", "broken"


class Workload(BaseModel):
    """So many clients each download the model once; what is not done by the end is timed out."""

    model_config = ConfigDict(protected_namespaces=())

    num_clients: Annotated[int, Field(ge=1, le=500)]
    model_id: Annotated[str, Field(pattern=f"^{_PART}(/{_PART})?$")]
    duration_seconds: Annotated[int, Field(ge=1, le=3600)]

    @property
    def path(self) -> str:
        """Return the path of the download; the id's slash is an underscore in it, as published."""
        return f"/performance/{self.model_id.replace('/', '_')}/{VERSION}/model.zip"


@dataclass
class Download:
    """What became of one download; instants are CLOCK_MONOTONIC nanoseconds."""

    start_ns: int = 0
    first_byte_ns: int = 0
    end_ns: int = 0
    bytes: int = 0
    status: int = 0
    outcome: str = ""

    @property
    def latency_ms(self) -> float:
        """Time from start to end; of a download that was timed out, a lower bound."""
        return (self.end_ns - self.start_ns) / 1e6

    def shown(self, client: int, origin_ns: int) -> dict[str, object]:
        """Return the record, its instants in ms since the workload began."""
        start_ms, first_byte_ms, end_ms = (
            round((at - origin_ns) / 1e6, 3) if at else None
            for at in (self.start_ns, self.first_byte_ns, self.end_ns)
        )
        return {
            "client": client, "start_ms": start_ms, "first_byte_ms": first_byte_ms,
            "end_ms": end_ms, "bytes": self.bytes, "status": self.status, "outcome": self.outcome,
        }  # fmt: skip


@dataclass
class Run:
    """One run of a workload, with every download of it."""

    workload: Workload
    run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    status: str = RUNNING
    begin_ns: int = field(default_factory=time.monotonic_ns)
    end_ns: int = 0
    problem: str = ""

    def __post_init__(self) -> None:
        self.downloads = [Download() for _ in range(self.workload.num_clients)]

    def shown(self) -> dict[str, object]:
        """Return how far it is; once it has ended, also its results."""
        shown = {
            "run_id": self.run_id,
            "status": self.status,
            "workload": self.workload.model_dump(),
            "ended": sum(each.outcome != "" for each in self.downloads),
        }
        if self.status == COMPLETED:
            shown["results"] = summary(self)
        return shown | ({"problem": self.problem} if self.problem else {})


def summary(run: Run) -> dict[str, object]:
    """Return what became of downloads; the mean is of whole and timed-out ones, as published.

    A mean with a time-out in it is a lower bound.
    """
    outcomes = [download.outcome for download in run.downloads]
    timed = [download for download in run.downloads if download.outcome in (DONE, TIMED_OUT)]
    latencies = [download.latency_ms for download in timed]
    return {
        "downloads": len(outcomes),
        "successful": outcomes.count(DONE),
        "timed_out": outcomes.count(TIMED_OUT),
        "failed_otherwise": len(outcomes) - len(timed),
        "total_duration_s": round((run.end_ns - run.begin_ns) / 1e9, 6),
        "bytes": sum(download.bytes for download in timed if download.outcome == DONE),
        "mean_ms": round(fmean(latencies), 3) if latencies else None,
        "requests": [item.shown(at, run.begin_ns) for at, item in enumerate(run.downloads)],
    }


class Health:
    """The endpoints; their only target is this service itself, on loopback."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self._last: Run | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, workload: Workload) -> JSONResponse:
        """Start the workload in the background and answer at once."""
        if self._last and self._last.status == RUNNING:
            reason = f"run {self._last.run_id} is not finished; wait for its end and start again"
            raise Refused(409, "under_way", reason)
        run = self._last = Run(workload)
        self._task = asyncio.create_task(self._work(run))
        told = {"run_id": run.run_id, "status": run.status, "results": RESULTS + run.run_id}
        return JSONResponse(told, 202)

    async def results(self, run_id: str) -> dict[str, object]:
        """Return how far a run is, or its results; the last one is kept."""
        if self._last is None or self._last.run_id != run_id:
            raise Refused(
                404, "unknown_run", "the service keeps only its last run, and this is another one"
            )
        return self._last.shown()

    async def _work(self, run: Run) -> None:
        """Start all clients at once, as published: each is a coroutine of this event loop."""
        deadline_s = asyncio.get_running_loop().time() + run.workload.duration_seconds
        # Its own default would let 100 in and have the others wait.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        unlimited = aiohttp.ClientTimeout(total=None)
        try:
            async with aiohttp.ClientSession(
                self._address, connector=connector, timeout=unlimited
            ) as session:
                path = run.workload.path
                await asyncio.gather(
                    *(download(session, path, deadline_s, into) for into in run.downloads)
                )
            run.end_ns, run.status = time.monotonic_ns(), COMPLETED
        except Exception as error:  # else it would be said nowhere, and the run never end
            run.status, run.problem = FAILED, f"{type(error).__name__}: {error}"


async def download(
    session: aiohttp.ClientSession, path: str, deadline_s: float, into: Download
) -> None:
    """Download once, and say in ``into`` what became of it; bytes are counted and not kept.

    ``deadline_s`` is on the event loop's clock: a loop that is held up notices it late.
    """
    into.start_ns = time.monotonic_ns()
    try:
        async with asyncio.timeout_at(deadline_s):
            # A redirect would lead away from the service itself, and so is no success.
            async with session.get(path, allow_redirects=False) as response:
                into.status = response.status
                async for chunk in response.content.iter_any():
                    into.first_byte_ns = into.first_byte_ns or time.monotonic_ns()
                    into.bytes += len(chunk)
        into.outcome = DONE if into.status == 200 else REFUSED
    except TimeoutError:
        into.outcome = TIMED_OUT
    except (aiohttp.ClientError, OSError):
        into.outcome = BROKEN
    finally:
        into.end_ns = time.monotonic_ns()


def add_to(app: FastAPI, port: int) -> None:
    """Give an application the endpoints."""
    health = Health(port)
    app.post(WORKLOAD)(health.start)
    app.get(RESULTS + "{run_id}")(health.results)
