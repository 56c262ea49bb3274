"""Carries a sweep out on the workers of a Dask scheduler, with the same journal as on one host."""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from perflab.errors import ClusterError, HostsDiffer
from perflab.sweeps.attempt import interruption
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.execution import ActiveSweep, SweepOptions, active_sweep
from perflab.sweeps.folder import INTERRUPTED, AttemptBegun, AttemptEnded, RunMade
from perflab.sweeps.hosts.hosts import (
    BENCH,
    SharedFolder,
    host_facts,
    unfit,
    worker_facts,
)
from perflab.sweeps.hosts.worker import BEGUN, CONNECT_S, ENDED, RUN, CellOrder, News, execute
from perflab.trials.client import ORDERLY_END_S
from perflab.trials.progress import Note

POLL_EVERY_S = 1.0
ANSWER_S = 5.0
NONE_LEFT = "no worker is left of those that were there at the start"
# The variable that sets how often the Dask scheduler retries a cell whose worker was lost.
FAILURES = "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0"
LOST = "WorkerLost"


@dataclass(frozen=True)
class OrderEnd:
    """The end of an order: its ``line`` for the journal, or the host of a ``lost`` worker."""

    order: CellOrder
    line: str = ""
    lost: str = ""


class Dispatch:
    """The orders that workers carry out.

    Dask chooses the worker; the resource ``bench`` allows each one order at a time. Only workers
    that were there at the start get orders, because only their hosts were compared.
    """

    def __init__(self, client: Any, hosts: Mapping[str, str], topic: str) -> None:
        self._client, self._hosts, self.topic = client, hosts, topic
        self._addresses = list(hosts)
        self._events: queue.Queue[News | Any] = queue.Queue()
        # By Dask's future: an order, and the addresses of the workers that may carry it out.
        self._submitted: dict[Any, tuple[CellOrder, list[str]]] = {}
        client.subscribe_topic(topic, self._take)

    def _take(self, event: tuple[float, Mapping[str, Any]]) -> None:
        _, news = event
        # Dask adds fields of its own.
        self._events.put(News(**{field.name: news[field.name] for field in fields(News)}))

    @property
    def under_way(self) -> list[CellOrder]:
        """The orders that have not ended yet."""
        return [order for order, _ in self._submitted.values()]

    def knows(self, host: str) -> bool:
        """Return whether a host can get an order."""
        return any(self._hosts[address] == host for address in self._addresses)

    def remove_host(self, host: str) -> None:
        """Give a host no more orders, because its worker ends or was lost."""
        self._addresses = [address for address in self._addresses if self._hosts[address] != host]

    def submit(self, order: CellOrder, host: str = "") -> None:
        """Give Dask an order for any host, or for ``host``; ClusterError without such a host."""
        workers = [worker for worker in self._addresses if host in ("", self._hosts[worker])]
        if not workers:
            # Dask would take an empty list for any worker, also one that came later.
            raise ClusterError(NONE_LEFT)
        future = self._client.submit(
            execute,
            order,
            key=f"perflab-{order.sweep}-{order.cell.id}-{order.attempt}-{secrets.token_hex(4)}",
            workers=workers,
            resources={BENCH: 1},
            retries=0,
            pure=False,
        )
        self._submitted[future] = (order, workers)
        future.add_done_callback(self._events.put)

    def news(self) -> Iterator[News | OrderEnd]:
        """Yield news and ends until no order is under way.

        ClusterError where no worker is left, or the scheduler is gone.
        """
        while self._submitted:
            try:
                events = [self._events.get(timeout=POLL_EVERY_S)]
            except queue.Empty:
                yield from self._orders_without_workers()
                continue
            time.sleep(POLL_EVERY_S / 10)
            while not self._events.empty():
                events.append(self._events.get())
            # News come before ends, so that the news of a cell come before its end.
            for item in sorted(events, key=lambda item: not isinstance(item, News)):
                if isinstance(item, News):
                    yield from self._news_of(item)
                else:
                    yield from self._end_of(item)

    def _news_of(self, news: News) -> Iterator[News | OrderEnd]:
        """Yield news of an order, or its end.

        The end releases the order at once, so that Dask cannot execute it again when its worker is
        lost.
        """
        for future, (order, _) in list(self._submitted.items()):
            if (order.cell.id, order.attempt) == (news.cell, news.attempt):
                if news.what == ENDED:
                    yield OrderEnd(self._take_back(future), line=news.text)
                else:
                    yield news

    def _take_back(self, future: Any) -> CellOrder:
        order, _ = self._submitted.pop(future)
        future.release()
        return order

    def _end_of(self, future: Any) -> Iterator[OrderEnd]:
        """Yield the end of a future's order once; a lost worker's host gets no more orders.

        Raises ClusterError where Dask could not execute the order.
        """
        if future not in self._submitted:
            return  # news of its host told its end already
        if future.status == "finished":
            line = future.result()
            yield OrderEnd(self._take_back(future), line=line)
            return
        error: Any = future.exception() if future.status == "error" else None
        if type(error).__name__ != "KilledWorker":
            label = self._submitted[future][0].cell.label
            why = error or future.status
            raise ClusterError(f"cell '{label}': Dask could not have it executed ({why})")
        address = error.last_worker.address
        lost = self._hosts.get(address, address)
        self.remove_host(lost)
        yield OrderEnd(self._take_back(future), lost=lost)

    def _orders_without_workers(self) -> Iterator[OrderEnd]:
        """Yield the orders whose workers are all gone; Dask would wait for these to come back."""
        try:
            # Not scheduler_info(): the client sometimes empties its own list of workers.
            present = self._client.run_on_scheduler(
                lambda dask_scheduler: [*dask_scheduler.workers]
            )
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"the scheduler does not answer any more: {error}") from error
        self._addresses = [address for address in self._addresses if address in present]
        if not self._addresses:
            raise ClusterError(NONE_LEFT)
        for future, (_, workers) in list(self._submitted.items()):
            if not set(workers) & set(self._addresses):
                yield OrderEnd(self._take_back(future), lost=self._hosts[workers[0]])

    def end(self) -> None:
        """End every running cell in order, and wait for that."""
        self._client.cancel(list(self._submitted), force=True)
        deadline = time.monotonic() + ORDERLY_END_S
        with contextlib.suppress(OSError, TimeoutError):
            while any(self._client.run(_executes, on_error="ignore").values()):
                if time.monotonic() > deadline:
                    return
                time.sleep(POLL_EVERY_S / 5)


def _executes(dask_worker: Any) -> bool:
    """Return whether a worker's thread is busy, also with a cancelled task."""
    return bool(dask_worker.state.executing or dask_worker.active_threads)


@contextlib.contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """Yield a client; refuse a scheduler that would repeat a cell whose worker was lost."""
    from distributed import Client

    try:
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"--scheduler {scheduler}: cannot be reached ({error}); start one with "
            f"'{FAILURES} dask scheduler', and give its address, such as tcp://head:8786"
        ) from error
    try:
        allowed = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures)
        if allowed != 0:
            raise ClusterError(
                f"the scheduler would measure a cell again, silently, when its worker is lost "
                f"(allowed-failures {allowed}); start it with {FAILURES}"
            )
        yield client
    finally:
        client.close(timeout=CONNECT_S)


def answering(client: Any) -> tuple[list[str], list[str]]:
    """Return the addresses of the workers that the scheduler reaches, and a remark on each other.

    A worker behind a router, or one that announces an address of its own loopback, is there for
    Dask; a sweep would end with it.
    """

    # Dask takes this function along to the scheduler: its imports are made there.
    async def ask(dask_scheduler: Any, timeout_s: float) -> dict[str, tuple[str, bool]]:
        import asyncio

        async def is_there(worker: Any) -> bool:
            try:
                async with asyncio.timeout(timeout_s):
                    told = await dask_scheduler.rpc(worker.address).identity()
            except OSError:
                return False
            return bool(told["id"] == worker.server_id)

        workers = list(dask_scheduler.workers.values())
        found = await asyncio.gather(*map(is_there, workers))
        return {
            worker.address: (str(worker.name), is_found)
            for worker, is_found in zip(workers, found, strict=True)
        }

    asked = client.run_on_scheduler(ask, timeout_s=ANSWER_S)
    remarks = [
        f"{host} gets no cell: the scheduler does not reach its worker at {address}; start it with "
        "--listen and an address of that host which the scheduler reaches"
        for address, (host, is_there) in asked.items()
        if not is_there
    ]
    return [address for address, (_, is_there) in asked.items() if is_there], remarks


def compared(
    client: Any, cells: Sequence[Cell], results: str, addresses: Sequence[str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return hosts by their workers' addresses, and their machine; HostsDiffer if not alike."""
    facts_by_address = client.run(worker_facts, cells, results, workers=list(addresses))
    facts = list(facts_by_address.values())
    if problems := unfit(host_facts(cells), facts):
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise HostsDiffer(f"nothing was started, because of\n{listed}")
    hosts = {address: fact["host"] for address, fact in facts_by_address.items()}
    return hosts, facts[0]["machine"]


def carry_out_on(sweep: Sweep, how: SweepOptions, scheduler: str, results: str) -> ActiveSweep:
    """Carry a sweep out on the workers of a Dask scheduler, or continue it; return it at its end.

    Every host copies the output of its cells to ``results``. RunInterrupted where the user ended
    the sweep; its running cells then ended in order on their hosts.
    """
    place = SharedFolder(results)
    place.check_writable()
    results = str(place.folder)
    with connected(scheduler) as client:
        addresses, remarks = answering(client)
        if not addresses:
            start = "start one on each host with 'perflab worker ADDRESS'"
            raise ClusterError("; ".join(remarks) or f"the scheduler has no worker; {start}")
        hosts, machine = compared(client, sweep.cells, results, addresses)
        with active_sweep(sweep, how, machine) as active:
            dispatch = Dispatch(client, hosts, f"perflab-{active.folder.name}")
            for remark in remarks:
                active.show(Note(text=remark))
            active.show(Note(text=f"{len(hosts)} hosts: {', '.join(sorted(hosts.values()))}"))
            return _HostsConductor(active, dispatch, results).run()


@dataclass(frozen=True)
class _HostsConductor:
    """Hands out the remaining cells of a sweep, and writes down their news and ends."""

    active: ActiveSweep
    dispatch: Dispatch
    results: str

    def run(self) -> ActiveSweep:
        """Return the sweep once no order is under way."""
        try:
            for cell in self.active.cells_to_do():
                self._submit(cell)
            for event in self.dispatch.news():
                self._note_news(event) if isinstance(event, News) else self._ended(event)
        except KeyboardInterrupt:
            self.dispatch.end()
            self._write_down_ends()
            raise self.active.interruption() from None
        except ClusterError as error:
            raise ClusterError(f"{error}; {self.active.way_on}") from None
        return self.active

    def _submit(self, cell: Cell) -> None:
        state = self.active.journal.cell(cell.id)
        host = state.attempts[-1].begun.host if state.attempts else ""
        # The unfinished run of a lost host stays there, so the cell is measured anew.
        is_lost = state.ended is not None and state.ended.kind == LOST
        resumes = state.to_go_on_with if self.dispatch.knows(host) and not is_lost else ""
        order = CellOrder(
            sweep=self.active.folder.name,
            cell=cell,
            attempt=len(state.attempts) + 1,
            resumes=resumes,
            results=self.results,
            wait_s=self.active.how.cell_wait_s,
            topic=self.dispatch.topic,
        )
        self.dispatch.submit(order, host if resumes else "")

    def _note_news(self, news: News) -> None:
        if news.what == BEGUN:
            attempt = {"cell": news.cell, "attempt": news.attempt, "host": news.host}
            self.active.journal.add(AttemptBegun(**attempt, goes_on_with=news.text))
            label = next(cell.label for cell in self.active.sweep.cells if cell.id == news.cell)
            self.active.show(Note(text=f"{news.host}: cell {label}"))
        elif news.what == RUN:
            self.active.journal.add(RunMade(cell=news.cell, run_id=news.text))
        else:
            self.active.show(Note(text=f"{news.host}: {news.text.strip()}"))

    def _ended(self, end: OrderEnd) -> None:
        cell, attempt = end.order.cell, end.order.attempt
        is_begun = len(self.active.journal.cell(cell.id).attempts) == attempt
        if end.lost and not is_begun:
            # Dask gives a worker orders in advance, which wait there.
            self.active.show(Note(text=f"{end.lost}: lost before it began {cell.label}"))
            self._submit(cell)
            return
        if end.line:
            ended = AttemptEnded.model_validate_json(end.line)
        else:
            error = f"the worker of {end.lost} was lost; what its run had measured is kept there"
            result = {"done": False, "kind": LOST, "error": error, "infrastructure": True}
            ended = self._end_of(end.order, host=end.lost, **result)
        if not is_begun:
            # News and results come by different ways, and the news of the beginning did not come.
            self._note_news(News(BEGUN, end.order.resumes, cell.id, attempt, ended.host))
        tries_again = self.active.ended(ended)
        self.active.show(Note(text=f"{ended.host}: {ended.in_short}: {cell.label}"))
        if ended.kind == INTERRUPTED:
            # Only the worker ended, and it leaves; the sweep goes on.
            self.dispatch.remove_host(ended.host)
        if tries_again or ended.kind == INTERRUPTED:
            self._submit(cell)

    def _end_of(self, order: CellOrder, **result: Any) -> AttemptEnded:
        """Return the end of an attempt whose worker reports none."""
        run_id = self.active.journal.cell(order.cell.id).run_id
        return AttemptEnded(
            cell=order.cell.id, attempt=order.attempt, run_id=run_id, seconds=0.0, **result
        )

    def _write_down_ends(self) -> None:
        """Write down that the running cells were interrupted."""
        for order in self.dispatch.under_way:
            attempts = self.active.journal.cell(order.cell.id).attempts
            if len(attempts) == order.attempt:
                result = interruption(order.cell, self.active.asked.by)
                host = attempts[-1].begun.host
                self.active.ended(self._end_of(order, host=host, **result))
