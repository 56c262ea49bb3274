"""The health side: the service downloads from itself, and a page starts that and shows it.

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
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any

import aiohttp
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from specimen.refusal import Refused

WORKLOAD = "/health/performance/workload"
RESULTS = "/health/performance/results/"
VERSION = "main"
# An owner and a name, as published, or a name alone; no part begins with a dot.
_PART = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
RUNNING, COMPLETED, FAILED = "running", "completed", "failed"
DONE, TIMED_OUT, REFUSED, BROKEN = "done", "timed_out", "refused", "broken"
MIB = 2**20


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
        instants = {"start_ms": self.start_ns, "end_ms": self.end_ns}
        if self.first_byte_ns:
            instants["first_byte_ms"] = self.first_byte_ns
        since = {name: round((at - origin_ns) / 1e6, 3) for name, at in instants.items()}
        return {
            "client": client,
            "first_byte_ms": None,
            **since,
            "bytes": self.bytes,
            "status": self.status,
            "outcome": self.outcome,
        }


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
    """Return the published measures; latencies are of whole and of timed-out downloads, as there.

    A mean or maximum with a time-out in it is a lower bound, and a p99 of 100 is their maximum.
    """
    whole = [each for each in run.downloads if each.outcome == DONE]
    timed_out = [each for each in run.downloads if each.outcome == TIMED_OUT]
    total_s = (run.end_ns - run.begin_ns) / 1e9
    delivered = sum(each.bytes for each in whole)
    latencies = sorted(each.latency_ms for each in [*whole, *timed_out])
    measures = {
        "mean_ms": fmean, "median_ms": median, "p99_ms": p99, "min_ms": min, "max_ms": max,
    }  # fmt: skip
    return {
        "downloads": len(run.downloads),
        "successful": len(whole),
        "timed_out": len(timed_out),
        "failed_otherwise": len(run.downloads) - len(latencies),
        "success_rate": len(whole) / len(run.downloads),
        "total_duration_s": round(total_s, 6),
        "bytes": delivered,
        "throughput_bytes_per_s": round(delivered / total_s, 3),
        "throughput_MiB_per_s": round(delivered / total_s / MIB, 6),
        "requests_per_s": round(len(whole) / total_s, 6),
        **{
            name: round(measure(latencies), 3) if latencies else None
            for name, measure in measures.items()
        },
        "requests": [each.shown(at, run.begin_ns) for at, each in enumerate(run.downloads)],
    }


def p99(ordered: list[float]) -> float:
    """Return the value at or below which 99% lie (nearest rank)."""
    return ordered[-(-99 * len(ordered) // 100) - 1]


class Health:
    """The endpoints; their only target is this service itself, on loopback."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self._last: Run | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, workload: Workload) -> JSONResponse:
        """Start the workload in the background and answer at once."""
        if self._last and self._last.status == RUNNING:
            reason = f"run {self._last.run_id} goes on: wait for its end, then start again"
            raise Refused(409, "under_way", reason)
        run = self._last = Run(workload)
        self._task = asyncio.create_task(self._work(run))
        told = {"run_id": run.run_id, "status": run.status, "results": RESULTS + run.run_id}
        return JSONResponse(told, 202)

    async def results(self, run_id: str) -> dict[str, object]:
        """Return how far a run is, or its results; the last one is kept."""
        if self._last is None or self._last.run_id != run_id:
            raise Refused(404, "unknown_run", "this is not the last run since the service started")
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
    """Give an application the endpoints and the page."""
    health, page = Health(port), Path(__file__).with_name("health.html").read_text()
    app.post(WORKLOAD)(health.start)
    app.get(RESULTS + "{run_id}")(health.results)

    @app.get("/health/page")
    async def show() -> Any:
        return HTMLResponse(page)
