"""A client that stands still now and then, in virtual time: its record, and the true numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perflab.load.records.looks import Looks, LoopProbe
from perflab.load.records.result import LoadResult
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload
from perflab.statistics.quantiles import OF_TRIALS, percentiles_of
from tests.load.planted import BEGIN_NS, S, load_result

MS = 1_000_000
Stalls = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Client:
    """Sends a load of some seconds; ``stalls`` are begin and end in ms, in which it does nothing.

    The service takes ``service_ms`` on the mean: a quarter of that at least, and an exponential
    time more. ``users`` 0 is an open loop.
    """

    stalls: Stalls = ()
    users: int = 10
    service_ms: float = 20.0
    seconds: float = 4.0
    rate: float = 250.0
    seed: int = 1

    @property
    def workload(self) -> Workload:
        stage = Stage(rate=self.rate, duration_s=self.seconds)
        arrivals: ClosedLoop | OpenLoop = OpenLoop(stages=(stage,))
        if self.users:
            arrivals = ClosedLoop(users=self.users, duration_s=self.seconds)
        return Workload(request=Request(), arrivals=arrivals)

    def awake_ns(self, at_ns: int) -> int:
        """Return when the client notices an event of an instant."""
        ends = (end * MS for begin, end in self.stalls if begin * MS <= at_ns < end * MS)
        return next(ends, at_ns)

    def requests(self) -> np.ndarray:
        """Return planned, started and done instants in ns, shape (requests, 3)."""
        rng = np.random.default_rng(self.seed)
        draws = rng.exponential(0.75 * self.service_ms * MS, 6_000) + 0.25 * self.service_ms * MS
        service = iter(draws.astype(np.int64).tolist())
        until_ns = round(self.seconds * S)
        if not self.users:
            plan = (np.arange(0, self.seconds, 1 / self.rate) * S).astype(np.int64).tolist()
            return np.array([self._sent(planned_ns, next(service)) for planned_ns in plan])
        rows = []
        for _ in range(self.users):
            planned_ns = 0
            while planned_ns < until_ns:
                rows.append(self._sent(planned_ns, next(service)))
                planned_ns = rows[-1][2]
        return np.array(rows)

    def _sent(self, planned_ns: int, service_ns: int) -> tuple[int, int, int]:
        started_ns = self.awake_ns(planned_ns)
        return planned_ns, started_ns, self.awake_ns(started_ns + service_ns)

    def looks(self) -> Looks:
        """Return the looks of a probe that is woken 0.05 ms late, or at the end of a stall."""
        probe = LoopProbe(BEGIN_NS)
        end_ns = BEGIN_NS + round(self.seconds * S)
        while probe.due_ns < end_ns:
            probe.look(self.awake_ns(probe.due_ns - BEGIN_NS) + BEGIN_NS + MS // 20)
        return Looks.of(probe.report())

    def result(self, folder: Path) -> LoadResult:
        """Write and return the load as a worker records it."""
        instants = self.requests() + BEGIN_NS

        def as_sent(rows: np.ndarray) -> None:
            for name, column in (("planned_ns", 0), ("started_ns", 1), ("sent_ns", 1)):
                rows[name] = instants[:, column]
            rows["done_ns"] = rows["first_byte_ns"] = instants[:, 2]

        done_s = (instants[:, 2] - BEGIN_NS) / S
        return load_result(
            folder, done_s, change=as_sent, looks=[self.looks()], cpu_ns=S // 10, lasted_s=1e6
        )

    def printed(self) -> dict[str, float]:
        """Return mean and percentiles of the response time, in ms, and requests a second."""
        instants = self.requests()
        response_ms = (instants[:, 2] - instants[:, 0]) / MS
        numbers = {f"p{share}": ms for share, ms in percentiles_of(response_ms, OF_TRIALS).items()}
        return {**numbers, "mean": float(response_ms.mean()), "rate": len(instants) / self.seconds}


def repeated(stall_ms: int, every_ms: int, until_ms: int = 4000) -> Stalls:
    """Return stalls of a length, one in every so many ms."""
    return [(at, at + stall_ms) for at in range(every_ms // 2, until_ms - stall_ms, every_ms)]
