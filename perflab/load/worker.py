"""A load worker: reads one order per line, sends the load, writes raw columns, reports.

It runs in a session of its own on the client's cores and ends when its standard input closes.
Orders and reports are JSON objects, one per line.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from perflab.load.aiohttp_client import AiohttpClient
from perflab.load.columns import STAGES, Buffers
from perflab.load.workload import Workload

TICK_S = 0.005
REPORT_S = 0.25


class Order:
    """One trial's load for this worker."""

    def __init__(self, words: dict[str, Any]) -> None:
        self.workload = Workload.model_validate(words["workload"])
        self.url: str = words["url"]
        self.users: list[int] = words["users"]
        self.quota: dict[str, int] = words["quota"]
        self.folder = Path(words["folder"])
        self.start_ns: int = words["start_ns"]


class Loop:
    """The closed loop: users share a quota of warm-up requests, then one of measured requests.

    There is no pause between the two, so the first measured request meets a loaded system, and
    the users' first, simultaneous start falls into the warm-up.
    """

    def __init__(self, order: Order, client: AiohttpClient, buffers: Buffers) -> None:
        self._arrivals = order.workload.arrivals
        self._client = client
        self._buffers = buffers
        self._users = order.users
        self._left = dict(order.quota)
        self.finished = 0
        self.delays_ms: list[float] = []
        self.begin_ns = self.end_ns = 0
        self._cpu_ns = [0, 0]

    @property
    def unsent(self) -> int:
        """Return the requests of the quotas that were never sent."""
        return sum(self._left.values())

    @property
    def cpu_ns(self) -> int:
        """Return this process's CPU time between the first and the last measured start."""
        return self._cpu_ns[1] - self._cpu_ns[0]

    async def run(self, start_ns: int) -> None:
        """Let every user work until the quotas or the time are used up."""
        users = [asyncio.create_task(self._user(number, start_ns)) for number in self._users]
        _, late = await asyncio.wait(users, timeout=self._arrivals.max_duration_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    def _take(self, planned_ns: int) -> str:
        """Take one request from a quota and return its stage ('' when there is none left)."""
        if self._left["warmup"]:
            self._left["warmup"] -= 1
            return "warmup"
        if not self._left["measure"]:
            return ""
        self._left["measure"] -= 1
        if not self.begin_ns:
            self.begin_ns = planned_ns
            self._cpu_ns[0] = time.process_time_ns()
            self.delays_ms.clear()
        self.end_ns = planned_ns
        if not self._left["measure"]:
            self._cpu_ns[1] = time.process_time_ns()
        return "measure"

    async def _user(self, number: int, start_ns: int) -> None:
        planned_ns = start_ns
        think_ns = int(self._arrivals.think_time_s * 1e9)
        while stage := self._take(planned_ns):
            await _until(planned_ns)
            record = dict.fromkeys(
                ("sent_ns", "first_byte_ns", "done_ns", "connect_ns", "status", "bytes", "error"), 0
            )
            record |= {"stage": STAGES.index(stage), "user": number, "planned_ns": planned_ns}
            record["started_ns"] = time.monotonic_ns()
            phases = await self._client.perform(record)
            self._buffers.append(record, phases)
            self.finished += stage == "measure"
            planned_ns = record["done_ns"] + think_ns
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                return


async def _until(instant_ns: int) -> None:
    # The loop's timers round to a millisecond, downwards too: a request must never start early.
    while (wait_ns := instant_ns - time.monotonic_ns()) > 0:
        await asyncio.sleep(wait_ns / 1e9)


async def _watch_loop(delays_ms: list[float]) -> None:
    """Note how late the event loop wakes a timer: its delay is the generator's own fault."""
    while True:
        due = time.monotonic() + TICK_S
        await asyncio.sleep(TICK_S)
        delays_ms.append((time.monotonic() - due) * 1e3)


async def _report_progress(work: Loop) -> None:
    while True:
        await asyncio.sleep(REPORT_S)
        _say({"event": "progress", "finished": work.finished})


async def carry_out(order: Order) -> dict[str, Any]:
    """Send one trial's load; return what the worker knows of itself."""
    arrivals = order.workload.arrivals
    client = AiohttpClient(
        order.url, order.workload.request, arrivals.connection, arrivals.timeout_s
    )
    buffers = Buffers()
    work = Loop(order, client, buffers)
    gc.collect()
    gc.disable()
    try:
        async with _company(_watch_loop(work.delays_ms), _report_progress(work)):
            await work.run(max(order.start_ns, time.monotonic_ns()))
    finally:
        gc.enable()
        await client.close()
    buffers.write(order.folder)
    return {
        "begin_ns": work.begin_ns,
        "end_ns": work.end_ns,
        "unsent": work.unsent,
        "cpu_ns": work.cpu_ns,
        "loop_delay_ms": work.delays_ms,
    }


@contextlib.asynccontextmanager
async def _company(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines beside the block and end them with it."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _say(words: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


async def _serve() -> None:
    """Carry out orders until standard input closes; an order under way is then given up."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=16 * 1024 * 1024)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    _say({"event": "ready", "pid": os.getpid()})
    line = asyncio.create_task(reader.readline())
    while order_line := await line:
        line = asyncio.create_task(reader.readline())
        work = asyncio.create_task(carry_out(Order(json.loads(order_line))))
        await asyncio.wait({work, line}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            return
        try:
            _say({"event": "done", **work.result()})
        except Exception as error:  # the parent must hear of it, whatever it was
            _say({"event": "failed", "reason": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Run the worker."""
    uvloop.run(_serve())


if __name__ == "__main__":
    main()
