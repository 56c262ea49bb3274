"""The worker of a host: one thread, one measurement at a time, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perflab.errors import ClusterError, PerflabError
from perflab.host.temporary_folders import temporary
from perflab.load.clients.targets import is_loopback
from perflab.paths import figures_dir, runs_dir
from perflab.sweeps.attempt import carry_out, resume_parameters
from perflab.sweeps.cells import Cell
from perflab.sweeps.execution import ASK_TO_END, interrupt_kernels
from perflab.sweeps.folder import AttemptEnded
from perflab.sweeps.hosts.hosts import BENCH, RUNS, SharedFolder, host_name
from perflab.trials.client import ORDERLY_END_S
from perflab.trials.progress import Event, Narrator, RunBegun

CONNECT_S = 30
POLL_EVERY_S = 0.5
AGAIN_S = 3.0
BEGUN, RUN, LINE, ENDED = "begun", "run", "line", "ended"
# Dask's profiler stops the worker's thread every 10 ms, also during a measurement.
SETTINGS = {"distributed.worker.profile.enabled": False}
TAKEN_S = 10.0


@dataclass(frozen=True)
class News:
    """News of a running cell: ``what`` is its beginning, its run, a line of progress or its end."""

    what: str
    text: str
    cell: str
    attempt: int
    host: str


@dataclass(frozen=True)
class CellOrder:
    """One attempt at a cell.

    ``resumes`` is a run of an earlier attempt, which is resumed where this host has it. ``topic``
    is Dask's topic for its news.
    """

    sweep: str
    cell: Cell
    attempt: int
    resumes: str
    results: str
    wait_s: float
    topic: str


def execute(order: CellOrder) -> str:
    """Carry an order out on a worker, and return its end as a line of the journal.

    The line is also sent as news before. Dask keeps a result on its worker, and would execute the
    cell again if the worker were lost before the sweep has fetched the result.
    """
    from distributed import get_worker

    worker = get_worker()
    host = host_name()

    def send(what: str, text: str) -> None:
        news = News(what, text, order.cell.id, order.attempt, host)
        # Several threads send news, but only the thread of the loop may write.
        worker.loop.add_callback(worker.log_event, order.topic, asdict(news))

    narrator = Narrator()

    def on_event(event: Event) -> None:
        if isinstance(event, RunBegun):
            send(RUN, event.run_id)
        text, stays = narrator.line(event)
        if stays:
            send(LINE, text)

    resumed = resume_parameters(order.resumes)
    send(BEGUN, next(iter(resumed.values()), ""))
    task = str(worker.get_current_task())
    with temporary("cell") as folder, _ended_with_its_task(worker, task):
        ended = carry_out(order.cell, order.attempt, resumed, folder, order.wait_s, on_event)
        ended = stored(ended, order, folder)
    line = ended.model_copy(update={"host": host}).model_dump_json()
    send(ENDED, line)
    return line


@contextlib.contextmanager
def _ended_with_its_task(worker: Any, key: str) -> Iterator[None]:
    """Interrupt the kernel once the worker ends, or the sweep was ended or is gone.

    Dask forgets a cancelled task, but does not end the thread that executes it.
    """
    from distributed.core import Status

    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(POLL_EVERY_S):
            task = worker.state.tasks.get(key)
            is_unwanted = task is None or task.state in ("cancelled", "released", "forgotten")
            if is_unwanted or worker.status is not Status.running:
                interrupt_kernels()
                # A kernel that is starting or between two cells does not notice the interrupt.
                ended.wait(AGAIN_S)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def stored(ended: AttemptEnded, order: CellOrder, failed_folder: Path) -> AttemptEnded:
    """Copy the output of an attempt to the results; the paths of what is returned lead there.

    The notebook with its figures or log is copied first, so that a copied run is never without it.
    """
    if not any((ended.notebook, ended.log)):
        return ended
    folder = figures_dir() / ended.run_id if ended.is_measured else failed_folder
    try:
        results = SharedFolder(order.results)
        copy = results.put(folder, f"cells/{order.sweep}/{order.cell.id}-{order.attempt}")
        run_place = f"{RUNS}/{ended.run_id}"
        run = results.put(runs_dir() / ended.run_id, run_place) if ended.is_measured else ""
    except PerflabError as error:
        kept = ended.model_dump(include={"cell", "attempt", "seconds", "run_id"})
        kind = type(error).__name__
        return AttemptEnded(**kept, done=False, kind=kind, error=str(error), infrastructure=True)

    def moved(path: str) -> str:
        return f"{copy}/{Path(path).relative_to(folder)}" if path else ""

    places = {"notebook": moved(ended.notebook), "log": moved(ended.log), "stored": run}
    return ended.model_copy(update=places)


def serve(scheduler: str, listen: str = "") -> None:
    """Work for a scheduler, reachable at the address ``listen``, until it or a signal ends this.

    By default that is the address by which this host reaches the scheduler.
    """
    import dask

    own = own_address(scheduler)
    listen = listen or own
    if is_loopback(listen) and not is_loopback(own):
        raise ClusterError(
            f"--listen {listen}: nobody but this host reaches it, and {scheduler} is elsewhere; "
            f"leave --listen out to take {own}, or name another address of this host"
        )
    with dask.config.set(SETTINGS), temporary("worker") as folder:
        asyncio.run(_serve(scheduler, listen, str(folder)))


def own_address(scheduler: str) -> str:
    """Return the address by which this host reaches a scheduler; ClusterError for no address."""
    host, _, port = scheduler.rpartition("://")[2].rpartition(":")
    try:
        (family, kind, _, _, address), *_ = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_DGRAM
        )
        with socket.socket(family, kind) as asked:  # nothing is sent
            asked.connect(address)
            return str(asked.getsockname()[0])
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no way to the scheduler {scheduler} ({error}): give an address like tcp://head:8786"
        ) from error


async def _serve(scheduler: str, listen: str, folder: str) -> None:
    from distributed import Worker
    from distributed.core import Status

    try:
        worker = await Worker(
            scheduler,
            nthreads=1,
            name=host_name(),
            resources={BENCH: 1},
            host=listen,
            memory_limit=0,  # A limit would pause or end a measurement.
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
    # No other cell begins, and the running one is interrupted by its watching thread.
    if worker.status is Status.running:
        worker.status = Status.closing_gracefully
    await _wait_while(lambda: worker.state.executing, ORDERLY_END_S)
    # Dask would execute the cells of lost results again.
    await _wait_while(lambda: worker.data and worker.status is not Status.closed, TAKEN_S)
    await worker.close()
    request.cancel()


async def _wait_while(goes_on: Callable[[], Any], most_s: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + most_s
    while goes_on() and loop.time() < deadline:
        await asyncio.sleep(POLL_EVERY_S)
