"""A sweep carried out by several hosts, by the same journal and rules as on one."""

from __future__ import annotations

from typing import Any

from perflab.errors import ClusterError
from perflab.sweeps.attempt import interruption
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.execution import How, Outcome, UnderWay, under_way
from perflab.sweeps.hosts.dispatch import Came, Dispatch, News, compared, connected
from perflab.sweeps.hosts.order import BEGUN, RUN, Order
from perflab.sweeps.hosts.store import Store
from perflab.sweeps.journal import (
    INTERRUPTED,
    NOT_TO_BE_RESUMED,
    AttemptBegun,
    AttemptEnded,
    RunMade,
)
from perflab.trials.events import Note

LOST = "WorkerLost"


def carry_out_on(sweep: Sweep, how: How, scheduler: str, store: str) -> Outcome:
    """Carry a sweep out on the workers of a Dask scheduler, or go on with it.

    Every host copies what its cells left to ``store``. RunInterrupted where the user ended it: the
    cells under way then ended in order on their hosts.
    """
    place = Store(store)
    place.check_writable()
    with connected(scheduler) as client:
        hosts, machine = compared(client, sweep.cells, place.address)
        with under_way(sweep, how, machine) as begun:
            dispatch = Dispatch(client, hosts, f"perflab-{begun.folder.name}")
            begun.show(Note(text=f"{len(hosts)} hosts: {', '.join(sorted(hosts.values()))}"))
            return _Conductor(begun, dispatch, place.address).run()


class _Conductor:
    """Hands out what is left of a sweep, and writes down what comes of it."""

    def __init__(self, begun: UnderWay, dispatch: Dispatch, store: str) -> None:
        self._begun = begun
        self._journal = begun.journal
        self._dispatch = dispatch
        self._store = store

    def run(self) -> Outcome:
        """Return what became of the sweep once no order is under way."""
        try:
            for cell in self._begun.cells_to_do():
                self._submit(cell)
            for came in self._dispatch.news():
                self._hear(came) if isinstance(came, News) else self._ended(came)
        except KeyboardInterrupt:
            self._dispatch.end()
            self._write_down_ends()
            raise self._begun.interruption() from None
        except ClusterError as error:
            raise ClusterError(f"{error}; {self._begun.way_on}") from None
        return self._begun.outcome()

    def _submit(self, cell: Cell) -> None:
        state = self._journal.cell(cell.id)
        last = state.attempts[-1] if state.attempts else None
        host = last.begun.host if last else ""
        # The half run of a host that is lost is kept there; what is measured now is measured anew.
        goes_on = state.run_id if self._dispatch.knows(host) else ""
        if last and last.ended and last.ended.kind in (LOST, *NOT_TO_BE_RESUMED):
            goes_on = ""
        order = Order(
            sweep=self._begun.folder.name,
            cell=cell,
            attempt=len(state.attempts) + 1,
            goes_on=goes_on,
            store=self._store,
            wait_s=self._begun.how.patience_s,
            topic=self._dispatch.topic,
        )
        self._dispatch.submit(order, host if goes_on else "")

    def _hear(self, news: News) -> None:
        if news.what == BEGUN:
            told = {"cell": news.cell, "attempt": news.attempt, "host": news.host}
            self._journal.add(AttemptBegun(**told, goes_on_with=news.text))
            label = next(each.label for each in self._begun.sweep.cells if each.id == news.cell)
            self._begun.show(Note(text=f"{news.host}: cell {label}"))
        elif news.what == RUN:
            self._journal.add(RunMade(cell=news.cell, run_id=news.text))
        else:
            self._begun.show(Note(text=f"{news.host}: {news.text.strip()}"))

    def _ended(self, came: Came) -> None:
        cell, attempt = came.order.cell, came.order.attempt
        is_begun = len(self._journal.cell(cell.id).attempts) == attempt
        if came.lost and not is_begun:
            # Dask gives a worker orders ahead, which wait there for their turn.
            self._begun.show(Note(text=f"{came.lost}: lost before it began {cell.label}"))
            self._submit(cell)
            return
        ended = AttemptEnded.model_validate_json(came.line) if came.line else self._lost(came)
        if not is_begun:
            # News are told beside results: those of its beginning did not come.
            self._hear(News(BEGUN, came.order.goes_on, cell.id, attempt, ended.host))
        is_again = self._begun.ended(ended)
        self._begun.show(Note(text=f"{ended.host}: {ended.in_short}: {cell.label}"))
        if ended.kind == INTERRUPTED:
            # The sweep goes on: whoever ended this cell was its worker, which leaves.
            self._dispatch.leaves(ended.host)
        if is_again or ended.kind == INTERRUPTED:
            self._submit(cell)

    def _lost(self, came: Came) -> AttemptEnded:
        error = f"the worker of {came.lost} was lost; what its run had measured is kept there"
        told = {"done": False, "kind": LOST, "error": error, "infrastructure": True}
        return self._end_of(came.order, host=came.lost, **told)

    def _end_of(self, order: Order, **told: Any) -> AttemptEnded:
        """Return the end of an attempt of which its worker tells nothing."""
        run_id = self._journal.cell(order.cell.id).run_id
        return AttemptEnded(
            cell=order.cell.id, attempt=order.attempt, run_id=run_id, seconds=0.0, **told
        )

    def _write_down_ends(self) -> None:
        """Write down that the cells under way were ended."""
        for order in self._dispatch.under_way:
            attempts = self._journal.cell(order.cell.id).attempts
            if len(attempts) == order.attempt:
                told = interruption(order.cell, self._begun.asked.by)
                host = attempts[-1].begun.host
                self._begun.ended(self._end_of(order, host=host, **told))
