"""A load worker: reads one order per line, sends the load, writes raw rows, reports.

It runs in a session of its own on the client's cores and ends when its standard input closes.
Orders and reports are JSON objects, one per line; a line while a load is under way ends it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import time
from typing import Any

import uvloop

from perflab.host.processes import go_first, peak_memory_bytes
from perflab.load.cpu_window import CpuInWindows, run_delay_ns
from perflab.load.order import Order, say
from perflab.load.under_way import Load


def _realtime_ahead_ns() -> int:
    """Return real time minus monotonic time: it moves when a clock is set, or a machine sleeps."""
    return time.time_ns() - time.monotonic_ns()


async def carry_out(load: Load) -> dict[str, Any]:
    """Send one load; return what the worker knows of itself."""
    gc.collect()
    gc.freeze()
    gc.disable()
    real_time = load.order.real_time and go_first()
    delayed_ns, began_ns, ahead_ns = run_delay_ns(), time.monotonic_ns(), _realtime_ahead_ns()
    try:
        await load.run()
    finally:
        gc.enable()
        gc.unfreeze()
    delayed_ns, wall_ns = run_delay_ns() - delayed_ns, time.monotonic_ns() - began_ns
    if isinstance(load.driver.cpu, CpuInWindows):
        delayed_ns, wall_ns = load.driver.cpu.delayed_ns, load.driver.cpu.wall_ns
    return {
        "unsent": load.driver.unsent,
        "start_ns": load.start_ns,
        "lasted_ns": load.lasted_ns,
        "first_errors": load.client.first_errors.found(),
        "cpu_ns": load.driver.cpu.used_ns,
        "looks": load.probe.report(),
        "run_delay_ns": delayed_ns,
        "wall_ns": wall_ns,
        "real_time": real_time,
        "clock_step_ms": (_realtime_ahead_ns() - ahead_ns) / 1e6,
        "capped": load.client.capped,
        "most_streams": load.client.most_streams,
        "stopped": load.stopped,
        "peak_memory_bytes": peak_memory_bytes(),
    }


async def _serve() -> None:
    """Carry out orders until standard input closes; an order under way is then given up."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=256 * 1024 * 1024)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say({"event": "ready", "pid": os.getpid()})
    line = asyncio.create_task(reader.readline())
    while order_line := await line:
        line = asyncio.create_task(reader.readline())
        words = json.loads(order_line)
        if "stop" in words:  # it came when the load had just ended
            continue
        try:
            load = Load(Order(words), loop)
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
        except Exception as error:  # the parent must hear of it, whatever it was
            say({"event": "failed", "reason": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Run the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    uvloop.run(_serve())


if __name__ == "__main__":
    main()
