"""A host's worker: one thread, one measurement at a time, and an orderly end."""

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

# No profiler: it stops the worker's thread every 10 ms, also while it measures. No limits of
# memory: a nanny or a pause would end or hold up a measurement; a worker that dies is lost, and the
# sweep takes its cell up elsewhere.
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
    """Be this host's worker until the scheduler ends, or a signal asks to.

    Scheduler and other workers reach it at the address ``listen`` of this host.
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
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ASK_TO_END:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, asked.set)
    ended = asyncio.ensure_future(worker.finished())
    told = asyncio.ensure_future(asked.wait())
    await asyncio.wait((ended, told), return_when=asyncio.FIRST_COMPLETED)
    await _end_cell(worker)
    await _hand_over(worker)
    await worker.close()
    told.cancel()


async def _end_cell(worker: Any) -> None:
    """End the cell under way in order, and begin no other that was handed over."""
    from distributed.core import Status

    if worker.status is Status.running:
        worker.status = Status.closing_gracefully
    loop = asyncio.get_running_loop()
    deadline, again = loop.time() + ORDERLY_END_S, loop.time()
    while worker.state.executing and loop.time() < deadline:
        if loop.time() >= again:
            # A kernel that was starting, or between two cells, did not notice the last time.
            interrupt_kernels()
            again = loop.time() + AGAIN_S
        await asyncio.sleep(LOOK_S)


async def _hand_over(worker: Any) -> None:
    """Wait until the results were taken: Dask has what is gone with a worker executed again."""
    from distributed.core import Status

    deadline = asyncio.get_running_loop().time() + TAKEN_S
    while worker.data and worker.status is not Status.closed:
        if asyncio.get_running_loop().time() > deadline:
            return
        await asyncio.sleep(LOOK_S)
