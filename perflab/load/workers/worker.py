"""A load worker: reads one order per line, sends the load, writes raw rows, reports.

It runs in a session of its own on the client's cores and ends when its standard input closes.
Orders and reports are JSON objects, one per line; a line during a load ends the load. What a script
prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import uvloop

from perflab.host.processes import go_first, private_streams
from perflab.host.shortages import told
from perflab.load.clients.client import DEFAULT_CONNECTIONS, Client, make_client
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.kept_replies import ReplyKeeper
from perflab.load.clients.outcome import CUT_OFF_CODES
from perflab.load.clients.targets import refuse_foreign, split
from perflab.load.records.columns import Recorder
from perflab.load.records.loop_probe import CPU_FILE, WAKEUPS_FILE, CpuLog, LoopProbe
from perflab.load.records.names import TEMPLATE_NAMES, write_names
from perflab.load.records.spool import Spool
from perflab.load.workers.drivers import ClosedDriver, OpenDriver
from perflab.load.workers.mixer import Mixer
from perflab.load.workers.timer import Timer
from perflab.load.workload.arrivals import ClosedLoop, Scripted
from perflab.load.workload.workload import Workload
from perflab.parameters import FrozenModel

if TYPE_CHECKING:
    from perflab.load.workers.scripted import ScriptedDriver

REPORT_S = 0.25
# The delay of a report after a failure, where failures end the load: one report covers a burst.
FAILURE_REPORT_S = 0.001
Say = Callable[[dict[str, Any]], None]


class LoadOrder(FrozenModel):
    """An order: one load and this worker's part of it."""

    workload: Workload
    url: str
    worker: int
    workers: int
    allowed: tuple[str, ...]
    folder: Path
    start_ns: int
    real_time: bool


def share(total: int, number: int, count: int) -> int:
    """Return a worker's part of a total; the parts of all workers add up to it."""
    return total // count + (number < total % count) if number < count else 0


class WorkerLoad:
    """One order under way."""

    def __init__(self, order: LoadOrder, loop: asyncio.AbstractEventLoop, say: Say) -> None:
        workload = order.workload
        origin, _ = split(order.url)
        refuse_foreign(order.url, order.allowed)
        self.order = order
        self._say = say
        self.recorder = Recorder(order.folder)
        self.timer = Timer(loop)
        prepared = Prepared(workload.request, origin, workload.connections)
        self.client = self._client(prepared)
        self.driver = self._driver(prepared)
        if not workload.is_judged:
            self.client.keeper = ReplyKeeper()
        self._failures_left = workload.stop.failures
        self._failure_report: asyncio.TimerHandle | None = None
        self._bound = asyncio.timeout(None)
        self.stopped = ""

    def _client(self, prepared: Prepared) -> Client:
        order, workload = self.order, self.order.workload
        arrivals, most = workload.arrivals, workload.connections.most
        users, beside = getattr(arrivals, "users", 0), 0
        if isinstance(arrivals, Scripted):
            # A user may have a WebSocket besides its connection for requests.
            users += bool(arrivals.monitor)
            beside = share(users, order.worker, order.workers)
        return make_client(
            workload,
            prepared,
            max(1, share(most or users or DEFAULT_CONNECTIONS, order.worker, order.workers)),
            sticky=bool(users) and not most,
            allowed=order.allowed,
            beside=beside,
        )

    def _driver(self, prepared: Prepared) -> ClosedDriver | OpenDriver | ScriptedDriver:
        order, arrivals = self.order, self.order.workload.arrivals
        record = self._record if order.workload.stop.failures else self.recorder.add
        users = range(order.worker, getattr(arrivals, "users", 0), order.workers)
        submit = self._submit(prepared)
        if isinstance(arrivals, ClosedLoop):
            # Workers without users get no part of the quotas.
            busy = min(order.workers, arrivals.users)
            quota = (
                share(arrivals.warmup_requests, order.worker, busy),
                share(arrivals.requests, order.worker, busy),
            )
            return ClosedDriver(arrivals, users, quota, submit, prepared, self.timer, record)
        if isinstance(arrivals, Scripted):
            from perflab.load.workers.scripted import ScriptedDriver

            return ScriptedDriver(
                arrivals,
                users,
                self.client,
                prepared.origin,
                order.workload.connections,
                self.timer,
                record,
                order.folder,
                order.allowed,
                order.workload.request.headers,
                order.workload.tls_context,
            )
        return OpenDriver(
            arrivals,
            order.worker,
            order.workers,
            self.client,
            submit,
            prepared,
            self.timer,
            record,
        )

    def _submit(self, prepared: Prepared) -> Callable[[Exchange], None]:
        """Return what sends an exchange: the one request, or that of a mix whose turn it is."""
        order, workload = self.order, self.order.workload
        if not workload.mix:
            return self.client.submit
        write_names(order.folder, TEMPLATE_NAMES, (item.name for item in workload.mix))
        seed = f"{workload.seed}:{order.worker}"
        mixer = Mixer(workload.mix, prepared.origin, workload.connections, seed)
        return mixer.before(self.client.submit)

    def _record(self, exchange: Exchange) -> None:
        self.recorder.add(exchange)
        if not exchange.error or exchange.error in CUT_OFF_CODES:
            return
        self._failures_left -= 1
        if self._failures_left == 0:
            self.stop(self.order.workload.stop.failures_reached)
        elif self._failure_report is None and self.order.workers > 1:
            # The generator adds up the failures of all workers: it must know of them soon.
            self._failure_report = asyncio.get_running_loop().call_later(
                FAILURE_REPORT_S, self._report
            )

    def stop(self, reason: str, within_s: float | None = None) -> None:
        """End the load; give up what waits, and after ``within_s`` all that is under way."""
        self.stopped = self.stopped or reason
        self.driver.stop()
        # In the next turn: the caller may be the end of a request.
        asyncio.get_running_loop().call_soon(self.client.give_up_waiting)
        if within_s is not None:
            latest_s = asyncio.get_running_loop().time() + within_s
            # It raises where the load has just ended.
            with contextlib.suppress(RuntimeError):
                self._bound.reschedule(min(latest_s, self._bound.when() or latest_s))

    async def run(self) -> None:
        """Send everything, then close the connections and write the record."""
        workload = self.order.workload
        wakeups, cpu = (Spool(self.order.folder / file) for file in (WAKEUPS_FILE, CPU_FILE))
        try:
            # The probe begins before any planned instant, to see a stall at the very begin.
            self.probe = LoopProbe(time.monotonic_ns(), wakeups.add)
            self.cpu = CpuLog(cpu.add)
            self.cpu.note()
            start_ns = self.order.start_ns
            if workload.windows is None:  # with windows the start is fixed: loads take turns
                start_ns = max(start_ns, self.probe.began_ns)
            self.start_ns = start_ns
            ahead_s = max(0, start_ns - self.probe.began_ns) / 1e9
            async with _beside(self._watch(), self._report_regularly()):
                self._bound = asyncio.timeout(ahead_s + workload.bound_s + workload.timeout_s + 5)
                async with self._bound:
                    await self.driver.run(start_ns)
        except TimeoutError:
            self.client.abort()
        finally:
            ended_ns = time.monotonic_ns()
            self.lasted_ns = ended_ns - start_ns
            self.probe.end(ended_ns)
            self.cpu.end()
            self.driver.stop()
            self.client.abort()
            await self.client.close()
            self.timer.close()
            if self._failure_report is not None:
                self._failure_report.cancel()
            for record in (self.recorder, wakeups, cpu):
                record.close()
            if self.client.keeper is not None:
                self.client.keeper.write(self.order.folder)

    async def _watch(self) -> None:
        """Note how late the event loop wakes a timer: the delay is the generator's own fault."""
        woken = asyncio.Event()
        while True:
            self.timer.at(self.probe.due_ns, woken.set)
            await woken.wait()
            woken.clear()
            self.probe.woke(time.monotonic_ns())
            self.cpu.note()

    async def _report_regularly(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            self._report()

    def _report(self) -> None:
        self._failure_report = None
        self.recorder.hand_over()
        self._say({"event": "progress", "in_flight": self.driver.in_flight})


@contextlib.asynccontextmanager
async def _beside(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines beside a block and end them with it."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _realtime_ahead_ns() -> int:
    """Return real time minus monotonic time; setting the clock or sleeping changes it."""
    return time.time_ns() - time.monotonic_ns()


async def carry_out(load: WorkerLoad) -> dict[str, Any]:
    """Send one load; return the worker's report."""
    gc.collect()
    gc.freeze()
    gc.disable()
    real_time = load.order.real_time and go_first()
    ahead_ns = _realtime_ahead_ns()
    try:
        await load.run()
    finally:
        gc.enable()
        gc.unfreeze()
    return {
        "unsent": load.driver.unsent,
        "start_ns": load.start_ns,
        "lasted_ns": load.lasted_ns,
        "first_errors": load.client.first_errors.texts(),
        "real_time": real_time,
        "clock_step_ms": (_realtime_ahead_ns() - ahead_ns) / 1e6,
        "capped": load.client.capped,
        "resent": load.client.resent,
        "stopped": load.stopped,
        "users_lost": getattr(load.driver, "users_lost", 0),
    }


async def _serve(orders: FileIO, reports: TextIO) -> None:
    """Carry out orders until their stream closes, which gives up the order under way."""

    def say(words: dict[str, Any]) -> None:
        reports.write(json.dumps(words) + "\n")

    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=256 * 1024 * 1024)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), orders)
    say({"event": "ready", "pid": os.getpid()})
    line = asyncio.create_task(reader.readline())
    while order_line := await line:
        line = asyncio.create_task(reader.readline())
        words = json.loads(order_line)
        if "stop" in words:  # the load had just ended
            continue
        try:
            load = WorkerLoad(LoadOrder.model_validate(words), loop, say)
            work = asyncio.create_task(carry_out(load))
            while not work.done():
                await asyncio.wait({work, line}, return_when=asyncio.FIRST_COMPLETED)
                if line.done() and not work.done():
                    stop = line.result()
                    if not stop:
                        work.cancel()
                        return
                    stop_words = json.loads(stop)
                    load.stop(str(stop_words["stop"]), stop_words["within_s"])
                    line = asyncio.create_task(reader.readline())
            say({"event": "done", **work.result()})
        except Exception as error:  # the parent must know of any failure
            say({"event": "failed", "reason": told(error) or f"{type(error).__name__}: {error}"})


def main() -> None:
    """Run the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        uvloop.run(_serve(*private_streams()))
    except OSError as error:
        sys.exit(told(error) or f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
