"""Orders handed to the workers of a Dask scheduler, and what is heard of them."""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.errors import ClusterError, HostsDiffer
from perflab.sweeps.cells import Cell
from perflab.sweeps.hosts.hosts import BENCH, check_installed, host_facts, unfit, worker_facts
from perflab.sweeps.hosts.order import ENDED, Order, execute
from perflab.trials.client import ORDERLY_END_S

CONNECT_S = 30
LOOK_S = 1.0
NONE_LEFT = "no worker is left of those that were there at the start"
# Dask's setting of the scheduler, and the variable that sets it.
FAILURES = "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0"


@dataclass(frozen=True)
class News:
    """What a cell under way tells: it began, its run, a line of progress, its end."""

    what: str
    text: str
    cell: str
    attempt: int
    host: str


@dataclass(frozen=True)
class Came:
    """An order came to its end: ``line`` is that of the journal; a lost worker left none."""

    order: Order
    line: str = ""
    lost: str = ""


class Dispatch:
    """Orders on their way to the workers that were there at the start.

    Dask chooses the worker; ``bench`` lets each have one order at a time. Workers that come later
    are not given any, for nobody compared their hosts, and neither are those that leave.
    """

    def __init__(self, client: Any, hosts: Mapping[str, str], topic: str) -> None:
        self._client = client
        self._hosts = hosts
        self._there = list(hosts)
        self.topic = topic
        self._came: queue.Queue[News | Any] = queue.Queue()
        # By Dask's future: an order, and the addresses of those that may carry it out.
        self._handed: dict[Any, tuple[Order, list[str]]] = {}
        client.subscribe_topic(topic, self._take)

    def _take(self, event: tuple[float, Mapping[str, Any]]) -> None:
        _, told = event
        self._came.put(News(**told))

    @property
    def under_way(self) -> list[Order]:
        """Return the orders that did not come to an end yet."""
        return [order for order, _ in self._handed.values()]

    def knows(self, host: str) -> bool:
        """Return whether a host can be given an order."""
        return any(self._hosts[each] == host for each in self._there)

    def leaves(self, host: str) -> None:
        """Give a host no more orders: its worker ends, or is lost."""
        self._there = [each for each in self._there if self._hosts[each] != host]

    def submit(self, order: Order, host: str = "") -> None:
        """Hand an order to a worker that is free, or to the one of a host."""
        workers = [worker for worker in self._there if host in ("", self._hosts[worker])]
        if not workers:
            # To Dask no worker means any: also one that came later.
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
        self._handed[future] = (order, workers)
        future.add_done_callback(self._came.put)

    def news(self) -> Iterator[News | Came]:
        """Yield what comes, until no order is under way.

        ClusterError where no worker is left, or the scheduler is gone.
        """
        while self._handed:
            try:
                came = [self._came.get(timeout=LOOK_S)]
            except queue.Empty:
                yield from self._stranded()
                continue
            time.sleep(LOOK_S / 10)
            while not self._came.empty():
                came.append(self._came.get())
            # What a cell told before it ended is told before its end.
            for item in sorted(came, key=lambda item: not isinstance(item, News)):
                if isinstance(item, News):
                    yield from self._told(item)
                else:
                    yield from self._ended(item)

    def _told(self, news: News) -> Iterator[News | Came]:
        """Yield news of an order under way; its end is believed at once.

        Dask forgets the order then: it cannot have it executed again where its worker is lost.
        """
        for future, (order, _) in list(self._handed.items()):
            if (order.cell.id, order.attempt) == (news.cell, news.attempt):
                if news.what == ENDED:
                    yield Came(self._take_back(future), line=news.text)
                else:
                    yield news

    def _take_back(self, future: Any) -> Order:
        order, _ = self._handed.pop(future)
        future.release()
        return order

    def _ended(self, future: Any) -> Iterator[Came]:
        if future not in self._handed:
            return  # its end was told
        if future.status == "finished":
            line = future.result()
            yield Came(self._take_back(future), line=line)
            return
        error: Any = future.exception() if future.status == "error" else None
        if type(error).__name__ != "KilledWorker":
            label = self._handed[future][0].cell.label
            why = error or future.status
            raise ClusterError(f"cell '{label}': Dask could not have it executed ({why})")
        address = error.last_worker.address
        lost = self._hosts.get(address, address)
        self.leaves(lost)
        yield Came(self._take_back(future), lost=lost)

    def _stranded(self) -> Iterator[Came]:
        """Yield the orders whose workers are all gone: Dask would wait for these to come back."""
        try:
            # Not scheduler_info(): the client itself empties its list of workers now and then.
            there = self._client.run_on_scheduler(_workers)
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"the scheduler does not answer any more: {error}") from error
        self._there = [each for each in self._there if each in there]
        if not self._there:
            raise ClusterError(NONE_LEFT)
        for future, (_, workers) in list(self._handed.items()):
            if not set(workers) & set(self._there):
                yield Came(self._take_back(future), lost=self._hosts[workers[0]])

    def end(self) -> None:
        """Have every cell under way end in order, and wait for that."""
        self._client.cancel(list(self._handed), force=True)
        deadline = time.monotonic() + ORDERLY_END_S
        with contextlib.suppress(OSError, TimeoutError):
            while any(self._client.run(_executes, on_error="ignore").values()):
                if time.monotonic() > deadline:
                    return
                time.sleep(LOOK_S / 5)


def _workers(dask_scheduler: Any) -> list[str]:
    """Return the addresses of the workers that there are; runs on the scheduler."""
    return list(dask_scheduler.workers)


def _executes(dask_worker: Any) -> bool:
    """Return whether a worker's thread still has something to do, wanted or not."""
    return bool(dask_worker.state.executing or dask_worker.active_threads)


@contextlib.contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """Give a client of a scheduler; refuse one that would re-run a cell whose worker is lost."""
    check_installed()
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


def compared(
    client: Any, cells: Sequence[Cell], store: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the workers' hosts by their addresses, and the kind of machine that they all are.

    HostsDiffer where they differ in what must be equal, or cannot use the store.
    """
    found = client.run(worker_facts, cells, store)
    if not found:
        raise ClusterError(
            "the scheduler has no worker; start one on each host with 'perflab worker ADDRESS'"
        )
    facts = list(found.values())
    if problems := unfit(host_facts(cells), facts):
        listed = "\n".join(f"  - {each}" for each in problems)
        raise HostsDiffer(f"nothing was started, because of\n{listed}")
    return {address: each["host"] for address, each in found.items()}, facts[0]["machine"]
