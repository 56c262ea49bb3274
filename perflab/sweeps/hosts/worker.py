"""The worker of a host: one thread, one measurement at a time, and an orderly end."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from perflab.errors import ClusterError
from perflab.host.files import temporary
from perflab.sweeps.attempt import ASK_TO_END, interrupt_kernels
from perflab.sweeps.hosts.hosts import BENCH, check_installed, host_name
from perflab.sweeps.hosts.order import AGAIN_S
from perflab.trials.client import ORDERLY_END_S

# No profiler: it stops the worker's thread every 10 ms, also during a measurement. No limits of
# memory: they would pause or end a measurement. If a worker dies, the sweep repeats its cell
# elsewhere.
SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}
CONNECT_S = 30
LOOK_S = 0.1
TAKEN_S = 10.0


def serve(scheduler: str, listen: str = "127.0.0.1") -> None:
    """Work for a scheduler until it ends, or a signal asks this process to end.

    The scheduler and other workers reach it at the address ``listen`` of this host.
    """
    check_installed()
    import dask

    with dask.config.set(SETTINGS), temporary("worker") as folder:
        asyncio.run(_serve(scheduler, listen, str(folder)))


async def _serve(scheduler: str, listen: str, folder: str) -> None:
    from distributed import Worker

    try:
        worker = await Worker(
            scheduler,
            nthreads=1,
            name=host_name(),
            resources={BENCH: 1},
            host=listen,
            memory_limit=0,
            dashboard=False,
            local_directory=folder,
            death_timeout=CONNECT_S,
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise ClusterError(
            f"no worker of {scheduler}: {error}; start 'dask scheduler' there, and check address "
            "and --listen"
        ) from error
    print(f"worker {worker.name} at {worker.address}, for {scheduler}", flush=True)
    end_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ASK_TO_END:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end_requested.set)
    ended = asyncio.ensure_future(worker.finished())
    request = asyncio.ensure_future(end_requested.wait())
    await asyncio.wait((ended, request), return_when=asyncio.FIRST_COMPLETED)
    await _end_cell(worker)
    await _hand_over(worker)
    await worker.close()
    request.cancel()


async def _end_cell(worker: Any) -> None:
    """End the running cell in order, and begin no other."""
    from distributed.core import Status

    if worker.status is Status.running:
        worker.status = Status.closing_gracefully
    loop = asyncio.get_running_loop()
    deadline, again = loop.time() + ORDERLY_END_S, loop.time()
    while worker.state.executing and loop.time() < deadline:
        if loop.time() >= again:
            # A kernel that was starting or between two cells did not notice the last interrupt.
            interrupt_kernels()
            again = loop.time() + AGAIN_S
        await asyncio.sleep(LOOK_S)


async def _hand_over(worker: Any) -> None:
    """Wait until the results were fetched; Dask would execute the cells of lost results again."""
    from distributed.core import Status

    deadline = asyncio.get_running_loop().time() + TAKEN_S
    while worker.data and worker.status is not Status.closed:
        if asyncio.get_running_loop().time() > deadline:
            return
        await asyncio.sleep(LOOK_S)
