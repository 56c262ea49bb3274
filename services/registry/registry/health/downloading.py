"""One client of the workload: a download whose bytes are counted and not kept."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import aiohttp

CHUNK_BYTES = 65_536
WAITING, DONE, TIMED_OUT, CANCELLED = "waiting", "done", "timed_out", "cancelled"
REFUSED, BROKEN, OVER_BUDGET = "refused", "broken", "over_budget"


@dataclass
class Download:
    """What became of one download; instants are CLOCK_MONOTONIC nanoseconds.

    ``outcome`` is ``done`` where all of the body arrived with status 200.
    """

    start_ns: int = 0
    first_byte_ns: int = 0
    end_ns: int = 0
    bytes: int = 0
    status: int | None = None
    outcome: str = WAITING
    detail: str = ""

    @property
    def latency_ms(self) -> float:
        """Time from start to end; of a download that was timed out, a lower bound."""
        return (self.end_ns - self.start_ns) / 1e6

    def shown(self, client: int, origin_ns: int) -> dict[str, object]:
        """Return the record, its instants in ms since the workload began."""

        def since(instant_ns: int) -> float | None:
            return round((instant_ns - origin_ns) / 1e6, 3) if instant_ns else None

        return {
            "client": client,
            "start_ms": since(self.start_ns),
            "first_byte_ms": since(self.first_byte_ns),
            "end_ms": since(self.end_ns),
            "latency_ms": round(self.latency_ms, 3),
            "bytes": self.bytes,
            "status": self.status,
            "outcome": self.outcome,
            "detail": self.detail,
        }


@dataclass
class Budget:
    """Bytes that all clients together may still receive."""

    left: int

    def spend(self, count: int) -> None:
        """Take what arrived from the budget.

        Raises
        ------
        OverBudget
            No more may arrive.
        """
        self.left -= count
        if self.left < 0:
            raise OverBudget


class OverBudget(Exception):
    """More bytes arrived than a workload may receive."""


async def download(
    session: aiohttp.ClientSession, path: str, deadline_s: float, budget: Budget, into: Download
) -> None:
    """Download once, and say in ``into`` what became of it.

    Parameters
    ----------
    deadline_s : float
        On the event loop's clock. A loop that is held up notices it late, and the end says so.

    Raises
    ------
    asyncio.CancelledError
        The workload was cancelled; that is noted too.
    """
    into.start_ns = time.monotonic_ns()
    try:
        async with asyncio.timeout_at(deadline_s):
            into.outcome = await _receive(session, path, budget, into)
    except TimeoutError:
        into.outcome = TIMED_OUT
    except OverBudget:
        into.outcome = OVER_BUDGET
    except asyncio.CancelledError:
        into.outcome = CANCELLED
        raise
    except (aiohttp.ClientError, OSError) as error:
        into.outcome, into.detail = BROKEN, type(error).__name__
    finally:
        into.end_ns = time.monotonic_ns()


async def _receive(
    session: aiohttp.ClientSession, path: str, budget: Budget, into: Download
) -> str:
    # A redirect would lead away from the service itself, and so is an answer like any other.
    async with session.get(path, allow_redirects=False) as response:
        into.status = response.status
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            into.first_byte_ns = into.first_byte_ns or time.monotonic_ns()
            into.bytes += len(chunk)
            budget.spend(len(chunk))
        return DONE if response.status == 200 else REFUSED
