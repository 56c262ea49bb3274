"""A client that stands still is refused, or its numbers are bounds, if that may have moved them.

The client lives in virtual time: its record and the true numbers are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perflab.instruments import Load
from perflab.instruments.requests import Requests
from perflab.load.checks.selfcheck import SelfCheck, check
from perflab.load.checks.trend import CLIENT_TIME
from perflab.load.records.loop_probe import TICK_MS, TICK_NS, WAKEUP, LoopProbe
from perflab.load.records.result import LoadResult
from perflab.load.records.wakeups import Wakeups
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload
from perflab.recordings.responses import CLIENT_LATE, client_column
from perflab.statistics.quantiles import OF_TRIALS, percentiles_of
from tests.load.planted import BEGIN_NS, MS, S, load_result, scripted

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

    def wakeups(self) -> Wakeups:
        """Return the wakeups of a probe that is woken 0.05 ms late, or at the end of a stall."""
        rows = bytearray()
        probe = LoopProbe(BEGIN_NS, rows.extend)
        end_ns = BEGIN_NS + round(self.seconds * S)
        while probe.due_ns < end_ns:
            probe.woke(self.awake_ns(probe.due_ns - BEGIN_NS) + BEGIN_NS + MS // 20)
        return read(rows)

    def result(self, folder: Path) -> LoadResult:
        """Write and return the load as a worker records it."""
        instants = self.requests() + BEGIN_NS

        def as_sent(rows: np.ndarray) -> None:
            for name, column in (("planned_ns", 0), ("started_ns", 1), ("sent_ns", 1)):
                rows[name] = instants[:, column]
            rows["done_ns"] = rows["first_byte_ns"] = instants[:, 2]

        done_s = (instants[:, 2] - BEGIN_NS) / S
        return load_result(
            folder, done_s, change=as_sent, wakeups=[self.wakeups()], cpu_ns=S // 10, lasted_s=1e6
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


def judged(folder: Path, client: Client) -> SelfCheck:
    result = client.result(folder / str(len(list(folder.iterdir()))))
    return check(result, client.workload)


def codes(judgement: SelfCheck) -> set[str]:
    return {reason.code for reason in judgement.reasons}


def read(rows: bytes | bytearray) -> Wakeups:
    return Wakeups.of(np.frombuffer(rows, WAKEUP))


def looked(*woken_ms: float, began_ns: int = 0) -> Wakeups:
    rows = bytearray()
    probe = LoopProbe(began_ns, rows.extend)
    for at_ms in woken_ms:
        probe.woke(began_ns + round(at_ms * MS))
    return read(rows)


# The wakeups of the probe.


def test_every_tick_that_a_stall_swallowed_counts_with_its_own_lateness() -> None:
    due_ns, late_ms = looked(5, 10, 165, 170).ticks
    assert late_ms == pytest.approx([0, 0, *np.arange(150, -1, -5), 0])
    assert np.diff(due_ns) == pytest.approx(TICK_NS)


def test_a_stall_at_the_very_end_is_noted_although_nobody_is_woken_for_it() -> None:
    rows: list[bytes] = []
    probe = LoopProbe(0, rows.append)
    probe.woke(5 * MS)
    probe.end(9 * MS)
    assert len(rows) == 1
    probe.end(110 * MS)
    assert read(b"".join(rows)).stalls.tolist() == [[5 * MS, 110 * MS]]


def test_a_stall_is_as_long_as_it_can_have_been_and_overlaps_no_other() -> None:
    wakeups = looked(5, 31, 36, 62)
    assert wakeups.stalls.tolist() == [[5 * MS, 31 * MS], [36 * MS, 62 * MS]]
    since, until = np.array([0, 10, 32, 20, 70]) * MS, np.array([100, 20, 35, 50, 90]) * MS
    assert wakeups.stood_still_ns(since, until).tolist() == [52 * MS, 10 * MS, 0, 25 * MS, 0]
    assert not len(looked(5 + 0.99 * TICK_MS, 14, 19).stalls), "shorter than a tick"


# The reasons from stalls.


def test_a_late_loop_is_judged_while_a_crowd_is_busy_and_not_while_it_joins(tmp_path: Path) -> None:
    logins, deliveries = np.linspace(0.5, 69.5, 200), np.linspace(70, 99.9, 30_000)
    woken_s = np.arange(0.005, 100, 0.005)

    def judgement(joining_ms: float, busy_ms: float) -> SelfCheck:
        delays = woken_s, np.where(woken_s < 70, joining_ms, busy_ms)
        folder = tmp_path / str(busy_ms)
        return check(load_result(folder, logins, deliveries, delays, 0.04), scripted())

    late = judgement(0.05, 4.8)
    assert late.loop_delay_p50_ms == 4.8
    assert codes(late) == {CLIENT_LATE}
    quiet = judgement(4.8, 0.05)
    assert quiet.loop_delay_p99_ms == pytest.approx(0.05)
    assert quiet.valid


def test_a_worker_stopped_150_ms_every_600_in_a_closed_loop_has_bounds_and_remarks(
    tmp_path: Path,
) -> None:
    client = Client(repeated(150, 600))
    assert client.printed()["p99"] > 2 * Client().printed()["p99"]
    judgement = judged(tmp_path, client)
    # No request was sent late, and Little's law holds.
    assert judgement.generator_lag_p99_ms == 0
    assert judgement.littles_law_ratio == pytest.approx(1, abs=0.02)
    assert judgement.valid
    assert CLIENT_TIME in {remark.code for remark in judgement.warnings}
    assert codes(judged(tmp_path, replace(client, users=0))) == {CLIENT_LATE}


def test_a_percentile_is_refused_where_so_few_stalls_could_have_moved_it(tmp_path: Path) -> None:
    # Some 30 of 1,000 requests meet the stall: they are above the rank of p99.
    client = Client([(1500, 1600)], users=0)
    judgement = judged(tmp_path, client)
    (reason,) = judgement.reasons
    assert reason.code == CLIENT_LATE
    assert "ms of p99" in reason


def test_a_long_stall_that_meets_few_requests_of_many_moves_none_of_the_printed(
    tmp_path: Path,
) -> None:
    # One user with 2 ms requests: one of about 1,900 waits most of 60 ms, and is the maximum.
    client = Client([(2000, 2060)], users=1, service_ms=2)
    judgement = judged(tmp_path, client)
    assert judgement.valid
    result = client.result(tmp_path / "again")
    numbers = result.response_times.numbers()
    assert numbers["max"].is_the_clients
    assert 40 < numbers["max"].client_ms < 65
    assert not numbers["p99"].is_the_clients


def test_stalls_that_move_a_number_by_a_tenth_are_refused_or_are_in_its_bounds(
    tmp_path: Path,
) -> None:
    """Compare with the truth: the same service times without stalls."""
    random = np.random.default_rng(8)
    passed, refused, bounded = 0, 0, 0
    for seed in range(40):
        stall_ms, every_ms = int(random.integers(10, 200)), int(random.integers(250, 3900))
        settings = {"users": int(random.choice([0, 1, 10])), "seed": seed, "seconds": 2.0}
        client = Client(repeated(stall_ms, every_ms, 2000), **settings)
        truth, printed = Client(**settings).printed(), client.printed()
        moved = [name for name in truth if abs(printed[name] / truth[name] - 1) > 0.15]
        valid = judged(tmp_path, client).valid
        passed, refused = passed + valid, refused + (bool(moved) and not valid)
        if not (moved and valid):
            continue
        assert client.users, f"{client} moved {moved} and passed"
        columns = with_bounds(client, tmp_path)
        for name in moved:
            column = "throughput_rps" if name == "rate" else f"{name}_ms"
            measured, client_part = columns[column], columns[client_column(column)]
            low, high = sorted([measured, measured - client_part])
            # Other draws of the service's times moved the tails by some percent, too.
            assert 0.85 * low < truth[name] < 1.15 * high, f"{client}: {name}"
            bounded += 1
    assert passed > 3
    assert refused > 5
    assert bounded > 20


def with_bounds(client: Client, folder: Path) -> Mapping[str, Any]:
    result = client.result(folder / f"bounds{client.seed}")
    return Requests().observe(Load(client.workload, result, pd.DataFrame(), ())).columns


@pytest.mark.parametrize("users", [10, 0])
def test_a_late_client_keeps_throughput_back_only_of_users_who_wait_for_answers(
    tmp_path: Path, users: int
) -> None:
    columns = with_bounds(Client(repeated(50, 500), users=users), tmp_path)
    assert (columns.get(client_column("throughput_rps"), 0.0) < 0) == bool(users)


def test_listeners_of_streams_who_stood_still_are_refused(tmp_path: Path) -> None:
    seconds = np.linspace(1, 9, 2000)

    def streamed(name: str, wakeups: Wakeups) -> SelfCheck:
        result = load_result(
            tmp_path / name, np.linspace(0.5, 9, 100), seconds, latency_s=0.02, cpu_ns=S // 10,
            wakeups=[wakeups],
        )  # fmt: skip
        return check(result, scripted())

    ticks = np.arange(5, 9500, 5.0)
    awake = ticks[ticks % 300 > 60]
    assert streamed("awake", looked(*ticks, began_ns=BEGIN_NS)).valid
    assert CLIENT_LATE in codes(streamed("asleep", looked(*awake, began_ns=BEGIN_NS)))
