"""Carries a sweep out on several hosts, with the same journal and rules as on one."""

from __future__ import annotations

from typing import Any

from perflab.errors import ClusterError
from perflab.sweeps.attempt import interruption
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.execution import ActiveSweep, SweepOptions, SweepOutcome, active_sweep
from perflab.sweeps.hosts.dispatch import Dispatch, OrderEnd, compared, connected
from perflab.sweeps.hosts.hosts import Store
from perflab.sweeps.hosts.worker import BEGUN, RUN, CellOrder, News
from perflab.sweeps.journal import (
    INTERRUPTED,
    NOT_TO_BE_RESUMED,
    AttemptBegun,
    AttemptEnded,
    RunMade,
)
from perflab.trials.progress import Note

LOST = "WorkerLost"


def carry_out_on(sweep: Sweep, how: SweepOptions, scheduler: str, store: str) -> SweepOutcome:
    """Carry a sweep out on the workers of a Dask scheduler, or continue it.

    Every host copies the output of its cells to ``store``. RunInterrupted where the user ended the
    sweep; its running cells then ended in order on their hosts.
    """
    place = Store(store)
    place.check_writable()
    with connected(scheduler) as client:
        hosts, machine = compared(client, sweep.cells, place.address)
        with active_sweep(sweep, how, machine) as active:
            dispatch = Dispatch(client, hosts, f"perflab-{active.folder.name}")
            active.show(Note(text=f"{len(hosts)} hosts: {', '.join(sorted(hosts.values()))}"))
            return _HostsConductor(active, dispatch, place.address).run()


class _HostsConductor:
    """Hands out the remaining cells of a sweep, and writes down their news and ends."""

    def __init__(self, active: ActiveSweep, dispatch: Dispatch, store: str) -> None:
        self._active = active
        self._journal = active.journal
        self._dispatch = dispatch
        self._store = store

    def run(self) -> SweepOutcome:
        """Return the result of the sweep once no order is under way."""
        try:
            for cell in self._active.cells_to_do():
                self._submit(cell)
            for event in self._dispatch.news():
                self._note_news(event) if isinstance(event, News) else self._ended(event)
        except KeyboardInterrupt:
            self._dispatch.end()
            self._write_down_ends()
            raise self._active.interruption() from None
        except ClusterError as error:
            raise ClusterError(f"{error}; {self._active.way_on}") from None
        return self._active.outcome()

    def _submit(self, cell: Cell) -> None:
        state = self._journal.cell(cell.id)
        last = state.attempts[-1] if state.attempts else None
        host = last.begun.host if last else ""
        # The unfinished run of a lost host stays there, so the cell is measured anew.
        resumes = state.run_id if self._dispatch.knows(host) else ""
        if last and last.ended and last.ended.kind in (LOST, *NOT_TO_BE_RESUMED):
            resumes = ""
        order = CellOrder(
            sweep=self._active.folder.name,
            cell=cell,
            attempt=len(state.attempts) + 1,
            resumes=resumes,
            store=self._store,
            wait_s=self._active.how.cell_wait_s,
            topic=self._dispatch.topic,
        )
        self._dispatch.submit(order, host if resumes else "")

    def _note_news(self, news: News) -> None:
        if news.what == BEGUN:
            attempt = {"cell": news.cell, "attempt": news.attempt, "host": news.host}
            self._journal.add(AttemptBegun(**attempt, goes_on_with=news.text))
            label = next(cell.label for cell in self._active.sweep.cells if cell.id == news.cell)
            self._active.show(Note(text=f"{news.host}: cell {label}"))
        elif news.what == RUN:
            self._journal.add(RunMade(cell=news.cell, run_id=news.text))
        else:
            self._active.show(Note(text=f"{news.host}: {news.text.strip()}"))

    def _ended(self, end: OrderEnd) -> None:
        cell, attempt = end.order.cell, end.order.attempt
        is_begun = len(self._journal.cell(cell.id).attempts) == attempt
        if end.lost and not is_begun:
            # Dask gives a worker orders in advance, which wait there.
            self._active.show(Note(text=f"{end.lost}: lost before it began {cell.label}"))
            self._submit(cell)
            return
        ended = AttemptEnded.model_validate_json(end.line) if end.line else self._lost(end)
        if not is_begun:
            # News and results come by different ways, and the news of the beginning did not come.
            self._note_news(News(BEGUN, end.order.resumes, cell.id, attempt, ended.host))
        tries_again = self._active.ended(ended)
        self._active.show(Note(text=f"{ended.host}: {ended.in_short}: {cell.label}"))
        if ended.kind == INTERRUPTED:
            # Only the worker ended, and it leaves; the sweep goes on.
            self._dispatch.remove_host(ended.host)
        if tries_again or ended.kind == INTERRUPTED:
            self._submit(cell)

    def _lost(self, end: OrderEnd) -> AttemptEnded:
        error = f"the worker of {end.lost} was lost; what its run had measured is kept there"
        result = {"done": False, "kind": LOST, "error": error, "infrastructure": True}
        return self._end_of(end.order, host=end.lost, **result)

    def _end_of(self, order: CellOrder, **result: Any) -> AttemptEnded:
        """Return the end of an attempt whose worker reports none."""
        run_id = self._journal.cell(order.cell.id).run_id
        return AttemptEnded(
            cell=order.cell.id, attempt=order.attempt, run_id=run_id, seconds=0.0, **result
        )

    def _write_down_ends(self) -> None:
        """Write down that the running cells were interrupted."""
        for order in self._dispatch.under_way:
            attempts = self._journal.cell(order.cell.id).attempts
            if len(attempts) == order.attempt:
                result = interruption(order.cell, self._active.asked.by)
                host = attempts[-1].begun.host
                self._active.ended(self._end_of(order, host=host, **result))
