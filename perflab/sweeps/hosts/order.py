"""Carries an order out on a worker: one attempt at a cell, copied to the store and reported."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perflab.errors import PerflabError
from perflab.host.files import temporary
from perflab.paths import figures_dir, runs_dir
from perflab.sweeps.attempt import carry_out, interrupt_kernels, resume_parameters
from perflab.sweeps.cells import Cell
from perflab.sweeps.hosts.hosts import host_name
from perflab.sweeps.hosts.store import RUNS, Store
from perflab.sweeps.journal import AttemptEnded, CellState
from perflab.trials.events import Event, RunBegun
from perflab.trials.progress import Narrator

LOOK_S = 0.5
AGAIN_S = 3.0
BEGUN, RUN, LINE, ENDED = "begun", "run", "line", "ended"


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
    store: str
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

    resumed = resume_parameters(CellState(run_id=order.resumes))
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
    """Interrupt the kernel once nobody waits for the task, because the sweep was ended or is gone.

    Dask forgets a cancelled task, but does not end the thread that executes it.
    """
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(LOOK_S):
            task = worker.state.tasks.get(key)
            if task is None or task.state in ("cancelled", "released", "forgotten"):
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
    """Copy the output of an attempt into the store; the paths of the result lead to the copy.

    The notebook with its figures or log is copied first, so that a copied run is never without it.
    """
    folder = figures_dir() / ended.run_id if ended.done else failed_folder
    place = f"cells/{order.sweep}/{order.cell.id}-{order.attempt}"
    if not any((ended.notebook, ended.log)):
        return ended
    try:
        store = Store(order.store)
        copy = store.put(folder, place)
        run_place = f"{RUNS}/{ended.run_id}"
        run = store.put(runs_dir() / ended.run_id, run_place) if ended.done else ""
    except PerflabError as error:
        return ended.model_copy(
            update={
                "done": False, "kind": type(error).__name__, "error": str(error),
                "infrastructure": True, "notebook": "", "log": "", "figures": (), "verdicts": (),
            }
        )  # fmt: skip

    def moved(path: str) -> str:
        return f"{copy}/{Path(path).relative_to(folder)}" if path else ""

    figures = tuple(map(moved, ended.figures))
    places = {"notebook": moved(ended.notebook), "log": moved(ended.log), "figures": figures}
    return ended.model_copy(update={**places, "stored": run})
