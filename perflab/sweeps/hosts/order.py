"""What a worker is told to do: one attempt at a cell, what it left copied, its end told."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import PerflabError
from perflab.host.files import temporary
from perflab.paths import figures_dir, runs_dir
from perflab.sweeps.attempt import carry_out, goes_on_with, interrupt_kernels
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
class Order:
    """One attempt at a cell.

    ``goes_on`` is a run of an earlier attempt; it is gone on with where this host has it. ``topic``
    is where its news are told.
    """

    sweep: str
    cell: Cell
    attempt: int
    goes_on: str
    store: str
    wait_s: float
    topic: str


def execute(order: Order) -> str:
    """Carry an order out on a worker, and return its end as a line of the journal.

    The same line is told as news before. Dask keeps results where they were made: of a worker that
    is lost before the sweep has fetched one, it would have the cell executed again.
    """
    from distributed import get_worker

    worker = get_worker()
    teller = _Teller(worker, order)
    again = goes_on_with(CellState(run_id=order.goes_on))
    teller.tell(BEGUN, next(iter(again.values()), ""))
    task = str(worker.get_current_task())
    with temporary("cell") as folder, _ended_with_its_task(worker, task):
        ended = carry_out(order.cell, order.attempt, again, folder, order.wait_s, teller.hear)
        ended = stored(ended, order, folder)
    line = ended.model_copy(update={"host": host_name()}).model_dump_json()
    teller.tell(ENDED, line)
    return line


class _Teller:
    """Tells the sweep's own process what the cell under way does."""

    def __init__(self, worker: Any, order: Order) -> None:
        self._worker = worker
        self._order = order
        self._narrator = Narrator()

    def tell(self, what: str, text: str) -> None:
        news = {
            "what": what,
            "text": text,
            "cell": self._order.cell.id,
            "attempt": self._order.attempt,
            "host": host_name(),
        }
        # The thread that follows a run tells too; only the loop's own thread may write.
        self._worker.loop.add_callback(self._worker.log_event, self._order.topic, news)

    def hear(self, event: Event) -> None:
        if isinstance(event, RunBegun):
            self.tell(RUN, event.run_id)
        text, stays = self._narrator.line(event)
        if stays:
            self.tell(LINE, text)


@contextlib.contextmanager
def _ended_with_its_task(worker: Any, key: str) -> Iterator[None]:
    """Interrupt the kernel once nobody waits for the task: the sweep was ended, or is gone.

    Dask forgets a task that is cancelled, but leaves the thread that executes it to its end.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            task = worker.state.tasks.get(key)
            if task is None or task.state in ("cancelled", "released", "forgotten"):
                interrupt_kernels()
                # A kernel that was starting, or between two cells, did not notice.
                over.wait(AGAIN_S)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def stored(ended: AttemptEnded, order: Order, kept: Path) -> AttemptEnded:
    """Copy what an attempt left into the store; its paths are then those of the copy.

    First the notebook, with figures or a log: a run that is there has all that belongs to it.
    """
    here = figures_dir() / ended.run_id if ended.done else kept
    place = f"cells/{order.sweep}/{order.cell.id}-{order.attempt}"
    if not any((ended.notebook, ended.log)):
        return ended
    try:
        store = Store(order.store)
        there = store.put(here, place)
        run_there = f"{RUNS}/{ended.run_id}"
        run = store.put(runs_dir() / ended.run_id, run_there) if ended.done else ""
    except PerflabError as error:
        return ended.model_copy(
            update={
                "done": False, "kind": type(error).__name__, "error": str(error),
                "infrastructure": True, "notebook": "", "log": "", "figures": (), "verdicts": (),
            }
        )  # fmt: skip

    def moved(path: str) -> str:
        return f"{there}/{Path(path).relative_to(here)}" if path else ""

    figures = tuple(map(moved, ended.figures))
    places = {"notebook": moved(ended.notebook), "log": moved(ended.log), "figures": figures}
    return ended.model_copy(update={**places, "stored": run})
