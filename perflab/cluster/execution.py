"""A sweep carried out by several hosts, by the same journal and rules as on one."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from perflab.cluster.dispatch import LOST, Came, Dispatch, News, compared, connected
from perflab.cluster.order import BEGUN, RUN, Order, published_end
from perflab.cluster.store import Store, store_fault
from perflab.cluster.store_address import absolute
from perflab.errors import ClusterError, RunInterrupted, StoreError
from perflab.sweeps.attempt import NOT_TO_BE_RESUMED, interrupted
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.execution import How, Outcome, UnderWay, cells_to_do, states, under_way
from perflab.sweeps.index import write_index
from perflab.sweeps.journal import INTERRUPTED, AttemptBegun, AttemptEnded, RunMade, parse_end
from perflab.sweeps.signals import AskedToEnd
from perflab.trials.events import Note


def carry_out_on(sweep: Sweep, how: How, scheduler: str, store: str) -> Outcome:
    """Carry a sweep out on the workers of a Dask scheduler, or go on with it.

    Parameters
    ----------
    store : str
        Where every host publishes what its cells left; see :class:`Store`.

    Raises
    ------
    ClusterError, HostsDiffer, StoreError
        Nothing was started, or no worker is left.
    RunInterrupted
        The user ended it; the cells under way ended in order on their hosts.
    """
    Store(store).check_writable()
    with connected(scheduler) as client:
        hosts, facts = compared(client, sweep.cells, how.mixed)
        _check_from_all(client, hosts, absolute(store))
        kinds = {each["host"]: each["machine"] for each in facts}
        alike = all(kind == facts[0]["machine"] for kind in kinds.values())
        with under_way(sweep, how, facts[0]["machine"] if alike else kinds) as begun:
            dispatch = Dispatch(client, hosts, f"perflab-{begun.folder.name}")
            begun.show(Note(text=f"{len(hosts)} hosts: {', '.join(sorted(hosts.values()))}"))
            return _Conductor(begun, dispatch, absolute(store)).run()


def _check_from_all(client: Any, hosts: Mapping[str, str], store: str) -> None:
    """Refuse a store that a host cannot use: keys and mounts are those of each host."""
    found = client.run(store_fault, store)
    faults = [f"{hosts.get(address, address)}: {told}" for address, told in found.items() if told]
    if faults:
        listed = "\n".join(f"  - {each}" for each in faults)
        raise StoreError(f"nothing was started, because of\n{listed}")


class _Conductor:
    def __init__(self, begun: UnderWay, dispatch: Dispatch, store: str) -> None:
        self._begun = begun
        self._journal = begun.journal
        self._dispatch = dispatch
        self._store = store
        self._failures: dict[str, int] = {}

    def run(self) -> Outcome:
        """Hand out every cell that is left to do, and write down what becomes of each."""
        self._write_index()
        try:
            for cell in cells_to_do(self._begun):
                self._submit(cell)
            for came in self._dispatch.news():
                self._hear(came) if isinstance(came, News) else self._ended(came)
        except KeyboardInterrupt:
            self._dispatch.end()
            self._write_down_ends(self._begun.asked)
        except ClusterError as error:
            raise ClusterError(f"{error}; {self._way_on()}") from None
        return Outcome(self._begun.folder, states(self._begun))

    def _submit(self, cell: Cell) -> None:
        state = self._journal.cell(cell.id)
        last = state.attempts[-1] if state.attempts else None
        host = last.begun.host if last else ""
        # The half run of a host that is lost is kept there; what is measured now is measured anew.
        goes_on = state.run_id if self._dispatch.knows(host) else ""
        if last and last.ended and last.ended.kind in {LOST, *NOT_TO_BE_RESUMED}:
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
            label = next(each.label for each in self._begun.sweep.cells if each.id == news.cell)
            self._journal.add(
                AttemptBegun(
                    cell=news.cell,
                    attempt=news.attempt,
                    label=label,
                    goes_on_with=news.text,
                    host=news.host,
                )
            )
            self._begun.show(Note(text=f"{news.host}: cell {label}"))
        elif news.what == RUN:
            self._journal.add(RunMade(cell=news.cell, run_id=news.text))
        else:
            self._begun.show(Note(text=f"{news.host}: {news.text.strip()}"))

    def _ended(self, came: Came) -> None:
        cell, attempt = came.order.cell, came.order.attempt
        state = self._journal.cell(cell.id)
        if came.line and len(state.attempts) < attempt:
            # News are told beside results: these did not come.
            line = parse_end(came.line)
            self._hear(News(BEGUN, came.order.goes_on, cell.id, attempt, line.host))
        if len(state.attempts) < attempt:
            # Its worker was lost before it told of a beginning: nothing was begun.
            self._begun.show(Note(text=f"{came.lost}: lost before it began {cell.label}"))
            self._submit(cell)
            return
        ended = parse_end(came.line) if came.line else self._lost(came)
        self._journal.add(ended)
        self._write_index()
        self._begun.show(Note(text=f"{ended.host}: {_told(ended)}: {cell.label}"))
        if ended.kind == INTERRUPTED:
            # The sweep goes on: whoever ended this cell was its worker, which leaves.
            self._dispatch.leaves(ended.host)
        if self._again(ended, bool(state.attempts[-1].begun.goes_on_with)):
            self._submit(cell)

    def _lost(self, came: Came) -> AttemptEnded:
        run_id = self._journal.cell(came.order.cell.id).run_id
        with contextlib.suppress(StoreError):
            # It may have been lost right after all was published.
            store = Store(self._store)
            if ended := published_end(store, run_id):
                own = {"attempt": came.order.attempt, "host": came.lost}
                return ended.model_copy(update=own)
            for place in (f"figures/{run_id}", f"runs/{run_id}") if run_id else ():
                store.clear(place)
        return AttemptEnded(
            cell=came.order.cell.id,
            attempt=came.order.attempt,
            done=False,
            seconds=0.0,
            run_id=run_id,
            kind=LOST,
            error=f"the worker of {came.lost} was lost; what its run had measured is kept there",
            infrastructure=True,
            host=came.lost,
        )

    def _again(self, ended: AttemptEnded, went_on: bool) -> bool:
        """Return whether the journal's rules take a cell up again."""
        if ended.done:
            return False
        if ended.kind == INTERRUPTED or (went_on and ended.kind in NOT_TO_BE_RESUMED):
            return True
        failures = self._failures[ended.cell] = self._failures.get(ended.cell, 0) + 1
        return ended.infrastructure and failures <= self._begun.sweep.retries

    def _write_down_ends(self, asked: AskedToEnd) -> None:
        """Write down that the cells under way were ended, and end."""
        for order in self._dispatch.under_way:
            state = self._journal.cell(order.cell.id)
            if len(state.attempts) == order.attempt:
                ended = interrupted(order.cell, order.attempt, 0.0, state.run_id, asked.by)
                host = state.attempts[-1].begun.host
                self._journal.add(ended.model_copy(update={"host": host}))
        self._write_index()
        raise RunInterrupted(f"the sweep was interrupted; {self._way_on()}") from None

    def _write_index(self) -> None:
        write_index(self._begun.folder, self._begun.sweep, self._journal)

    def _way_on(self) -> str:
        return f"go on with 'perflab sweep {self._begun.sweep.file} --resume' and the same options"


def _told(ended: AttemptEnded) -> str:
    return "done" if ended.done else f"{ended.kind}: {ended.error.strip().partition(chr(10))[0]}"
