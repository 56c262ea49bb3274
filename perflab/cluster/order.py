"""What a worker is told to do: one attempt at a cell, its results published, its end told."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.cluster.hosts import host_name
from perflab.cluster.store import Store
from perflab.durable import explained, replace_file
from perflab.errors import PerflabError, RunInterrupted
from perflab.host.temporary_folders import temporary
from perflab.paths import figures_dir, runs_dir
from perflab.progress import Narrator
from perflab.sweeps.attempt import carry_out, goes_on_with, interrupted
from perflab.sweeps.cells import Cell
from perflab.sweeps.journal import AttemptEnded, CellState, parse_end
from perflab.sweeps.signals import interrupt_kernels
from perflab.trials.events import Event, RunBegun

LOOK_S = 0.5
AGAIN_S = 3.0
BEGUN, RUN, LINE, ENDED = "begun", "run", "line", "ended"
# How a cell ended, published with its figures.
END = "cell.json"


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
    state = CellState(run_id=order.goes_on)
    again = goes_on_with(state)
    teller.tell(BEGUN, next(iter(again.values()), ""))
    ended = _ended_before(order)
    if ended is None:
        with (
            temporary("cell") as folder,
            _ended_with_its_task(worker, str(worker.get_current_task())),
        ):
            ended = _carried_out(order, again, folder / "kept", teller)
    told = ended.model_copy(update={"attempt": order.attempt, "host": host_name()})
    line = told.model_dump_json()
    teller.tell(ENDED, line)
    return line


def published_end(store: Store, run_id: str) -> AttemptEnded | None:
    """Return how the cell ended whose run has been published; None where no such run has.

    Nobody need have heard of it: its worker, or the sweep, may have been lost right after.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    if not run_id or store.published(f"runs/{run_id}") is None:
        return None
    return _end_beside_figures(store, run_id)


def _ended_before(order: Order) -> AttemptEnded | None:
    """Return how the cell ended already, where what it goes on with has been published."""
    with contextlib.suppress(PerflabError):
        return published_end(Store(order.store), order.goes_on)
    return None


def _carried_out(
    order: Order, again: Mapping[str, str], kept: Path, teller: _Teller
) -> AttemptEnded:
    """Execute the notebook and publish what it left; in ``kept`` lies what a failed one left."""
    kept.mkdir()
    began = time.monotonic()
    try:
        ended = carry_out(order.cell, order.attempt, again, kept, order.wait_s, teller.hear)
    except RunInterrupted:
        seconds = round(time.monotonic() - began, 1)
        ended = interrupted(order.cell, order.attempt, seconds, teller.run_id)
    return _published(order, ended, kept)


class _Teller:
    """Tells the sweep's own process what the cell under way does."""

    def __init__(self, worker: Any, order: Order) -> None:
        self._worker = worker
        self._order = order
        self._narrator = Narrator()
        self.run_id = order.goes_on

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
            self.run_id = event.run_id
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


def _published(order: Order, ended: AttemptEnded, kept: Path) -> AttemptEnded:
    """Publish what an attempt left; its paths are then those of the store."""
    try:
        store = Store(order.store)
        if ended.done:
            return publish_success(store, ended)
        return _failure(store, order, ended, kept)
    except PerflabError as error:
        return ended.model_copy(
            update={
                "done": False, "kind": type(error).__name__, "error": str(error),
                "infrastructure": True, "notebook": "", "log": "", "figures": (), "verdicts": (),
            }
        )  # fmt: skip


def publish_success(store: Store, ended: AttemptEnded) -> AttemptEnded:
    """Publish figures and notebook, then the run: a run that is there has all that belongs to it.

    An attempt whose worker was lost in between may have published the figures.
    """
    told = _end_beside_figures(store, ended.run_id)
    if told is None:
        here, place = figures_dir() / ended.run_id, f"figures/{ended.run_id}"
        told = _told_from(store, ended, here, store.address(place))
        with explained(here / END, "its run is safe", "point PERFLAB_FIGURES at another folder"):
            replace_file(here / END, told.model_dump_json().encode())
        # An attempt before, which has ended, executed the notebook too: its bytes are others.
        store.clear(place)
        store.publish(here, place)
    store.publish(runs_dir() / ended.run_id, f"runs/{ended.run_id}")
    own = ("attempt", "seconds", "at")
    return told.model_copy(update={name: getattr(ended, name) for name in own})


def _told_from(store: Store, ended: AttemptEnded, here: Path, figures: str) -> AttemptEnded:
    """Return an end whose paths are those of the store."""
    there = {path: f"{figures}/{Path(path).relative_to(here)}" for path in _paths(ended)}
    return ended.model_copy(
        update={
            "published": store.address(f"runs/{ended.run_id}"),
            "notebook": there[ended.notebook],
            "figures": tuple(there[path] for path in ended.figures),
        }
    )


def _end_beside_figures(store: Store, run_id: str) -> AttemptEnded | None:
    place = f"figures/{run_id}"
    if END not in (store.published(place) or {}):
        return None
    return parse_end(store.read(f"{place}/{END}").decode())


def _paths(ended: AttemptEnded) -> list[str]:
    return [ended.notebook, *ended.figures]


def _failure(store: Store, order: Order, ended: AttemptEnded, kept: Path) -> AttemptEnded:
    if not any(kept.iterdir()):
        return ended
    # Two attempts never share a place, also where a sweep's journal was lost.
    place = f"failed/{order.sweep}/{order.cell.id}-{order.attempt}-{time.time_ns()}"
    there = store.publish(kept, place)
    names = {name: getattr(ended, name) for name in ("notebook", "log")}
    moved = {name: f"{there}/{Path(path).name}" for name, path in names.items() if path}
    return ended.model_copy(update=moved)
