"""Accounts of a request: where its time goes, and what it counts, by kernel and stores.

Everything is read right before and after a load, but for the calls that threads are blocked in,
which are sampled.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import ClassVar

import pandas as pd

from perflab.errors import StackError
from perflab.host.blocked_threads import FLUSH, INTERVAL_S, TIMER, BlockedThreads
from perflab.host.kernel_counts import read, tcp_counts
from perflab.host.meters import ProcessTable
from perflab.host.thread_accounts import AccountSampler
from perflab.instruments.instrument import Load, Observation, OfNode, Sensor
from perflab.instruments.metrics import Total, increments, totals
from perflab.instruments.statements import COUNTERS, StatementCounter, Statements
from perflab.recordings import Remark
from perflab.recordings.columns import ACCOUNTS
from perflab.stacks.backend import Instance
from perflab.statistics.cumulative import used_ns

# A store may have many processes; each sample looks at all.
STORES_EVERY_S = 0.02
# A thread with a smaller share of the service's time on cores waits for other reasons.
AT_WORK = 0.1
# A timer that is due later than so many response times is none of the request's.
TIMERS_WITHIN = 1.5
TCP = {
    "Tcp ActiveOpens": "connections opened",
    "TcpExt DelayedACKs": "delayed acknowledgements",
    "Tcp RetransSegs": "segments sent again",
}
# Fields of /proc/PID/stat after the command: faults of pages, of the process and of its ended
# children. Source: proc(5).
FAULTS = (7, 8)
WRITTEN = "bytes written to disk"
STARTED = "processes and threads started"
Row = tuple[str, str, float, float]
NOTHING = float("nan")


class _Accounts(Sensor["Accounts"]):
    def before(self) -> None:
        self._service = self.scene.instance(self.settings.node)
        self._stores = {
            # The same in all variants: each has a store of its own.
            node.rpartition(".")[2]: instance
            for node, instance in self.scene.services.items()
            if instance.launch.spec.store or instance.launch.spec.name in COUNTERS
        }
        self._counters: dict[str, StatementCounter] = {}
        self._unread: list[Remark] = []
        for name, store in self._stores.items():
            try:
                counter = COUNTERS[store.launch.spec.name](store)
                counter.prepare()
                self._counters[name] = counter
            except (KeyError, StackError) as error:
                why = error if isinstance(error, StackError) else "the lab does not know its server"
                text = f"the statements of {name} are not known: {why}"
                self._unread.append(Remark(code="accounts.statements", text=text))
        self._totals: list[Mapping[str, Total]] = []
        self._read_metrics()

    def _read_metrics(self) -> None:
        if path := self.settings.metrics:
            try:
                self._totals.append(totals(self._service.launch.port, path))
            except StackError as error:
                text = f"the metrics of '{self.settings.node}' are not known: {error}"
                self._unread.append(Remark(code="accounts.metrics", text=text))

    def begin(self) -> None:
        for counter in self._counters.values():
            counter.begin()
        every = {"": self._service, **self._stores}
        self._blocked = {
            name: BlockedThreads(each.meter(), STORES_EVERY_S if name else INTERVAL_S)
            for name, each in every.items()
        }
        self._accounts = AccountSampler({name: each.meter() for name, each in every.items()})
        self._before = _Reading(every)
        for blocked in self._blocked.values():
            blocked.start()
        self._accounts.start()

    def end(self) -> None:
        self._accounts.stop()
        for blocked in self._blocked.values():
            blocked.stop()
        self._after = _Reading({"": self._service, **self._stores})
        self._statements = {name: counter.end() for name, counter in self._counters.items()}

    def after(self) -> None:
        for counter in self._counters.values():
            counter.leave()
        self._read_metrics()

    def observe(self, load: Load) -> Observation:
        requests = load.result.requests
        done = requests[requests["error"] == ""]
        if done.empty:
            return Observation(warnings=self._unread)
        response_ms = float((done["done_ns"] - done["started_ns"]).mean()) / 1e6
        rows = [
            ("response", "", float(done["bytes"].mean()), response_ms),
            *self._rows(len(done), response_ms),
        ]
        table = pd.DataFrame(rows, columns=["kind", "entry", "count", "time_ms"])
        return Observation(tables={"accounts": table}, warnings=self._unread)

    def _rows(self, requests: int, response_ms: float) -> Iterator[Row]:
        cpu_ns = since(self._before.cpu_ns, self._after.cpu_ns)
        accounts, span = self._accounts.table(), (self._before.at_ns, self._after.at_ns)
        for name in ("", *self._stores):
            statements = self._statements.get(name, {})
            yield from statement_rows(name, statements, requests)
            # Of what a store works, statements are a part; some of their time is no work.
            of_statements_ms = sum(time_ms for _, time_ms in statements.values())
            rest_ms = max(0.0, cpu_ns[name] / 1e6 - of_statements_ms)
            yield ("store" if name else "cpu", name, NOTHING, rest_ms / requests)
            delay_ms = used_ns(accounts[accounts["service"] == name], "delay_ns", *span) / 1e6
            yield ("wait", f"a core ({name})" if name else "a core", NOTHING, delay_ms / requests)
        for name, blocked in self._blocked.items():
            for kind, share in waits(blocked, response_ms).items():
                # Of what a store waits for, only its disk is known to hold a request up.
                if not name or kind == FLUSH:
                    entry = f"{kind} ({name})" if name else kind
                    yield ("wait", entry, NOTHING, share * (span[1] - span[0]) / 1e6 / requests)
        for what, count in since(self._before.counts, self._after.counts).items():
            yield ("count", what, count / requests, NOTHING)
        if len(self._totals) == 2:
            for name, grown in increments(*self._totals):
                yield ("metric", name, grown.number / requests, grown.time_s * 1e3 / requests)


class Accounts(OfNode):
    """Fills the table ``accounts``: per request that was answered, of a service and its stores.

    ``kind`` and ``entry`` name a row; ``count`` and ``time_ms`` are per request. Rows: ``response``
    (the mean time, and the bytes of an answer), ``cpu`` of the service, ``statement`` of each store
    (calls, and time of planning and execution), ``store`` (its other CPU), ``wait`` (for a core,
    and in calls that sleep, flush, lock a file, or wait for a timer), ``count`` (of the kernel:
    connections opened, page faults, bytes written...), and ``metric`` (what the service tells of
    itself on the path ``metrics``, if that is given).

    The times are parts of the response time only where requests come one at a time; those of
    metrics are none, as they may hold each other, or the response time itself.
    """

    at_work: ClassVar = _Accounts
    tables: ClassVar = {"accounts": ACCOUNTS}

    metrics: str = ""


def statement_rows(store: str, statements: Statements, requests: int) -> Iterator[Row]:
    """Yield a row for each statement, with calls and time per request."""
    for text, (calls, time_ms) in statements.items():
        if calls:
            yield ("statement", f"{store}: {text}", calls / requests, time_ms / requests)


def waits(blocked: BlockedThreads, response_ms: float) -> dict[str, float]:
    """Return the share of the load in which threads at work were blocked, by kind of wait."""
    shares: dict[str, float] = {}
    busiest = blocked.busiest
    for (thread, kind, timeout_ms), samples in blocked.seen.items():
        is_at_work = busiest.get(thread, 0.0) >= AT_WORK
        if is_at_work and (kind != TIMER or timeout_ms <= TIMERS_WITHIN * response_ms):
            shares[kind] = shares.get(kind, 0.0) + samples / max(1, blocked.samples)
    return shares


class _Reading:
    """One reading of a service (named ``""``) and its stores."""

    def __init__(self, instances: Mapping[str, Instance]) -> None:
        table = ProcessTable()
        self.at_ns = time.monotonic_ns()
        readings = {name: each.meter().read(table) for name, each in instances.items()}
        self.cpu_ns = {name: each.cpu_ns if each else 0 for name, each in readings.items()}
        members = instances[""].meter().members(table)
        self.counts = {**tcp_counts(counters=TCP), **process_counts(members)}


def since(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return how much each number has grown."""
    return {name: max(0, value - before.get(name, 0)) for name, value in after.items()}


def process_counts(members: Iterable[int]) -> dict[str, int]:
    """Return what the kernel counts of processes, summed; starts are those of the whole machine."""
    counts = dict.fromkeys(["page faults", STARTED, WRITTEN], 0)
    for line in read("/proc/stat").splitlines():
        if line.startswith("processes "):
            counts[STARTED] = int(line.split()[1])
    for pid in members:
        with suppress(IndexError, ValueError):
            fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            counts["page faults"] += sum(int(fields[place]) for place in FAULTS)
            for line in read(f"/proc/{pid}/io").splitlines():
                name, _, value = line.partition(": ")
                if name == "write_bytes":
                    counts[WRITTEN] += int(value)
    return counts
