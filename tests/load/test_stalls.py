"""A client that stands still is refused if that could have moved a printed number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perflab.load.checks.selfcheck import SelfCheck, check
from perflab.load.checks.stalls import MEAN_DELAY, STALLED_TIME, STALLS
from perflab.load.checks.times import times_of
from perflab.load.records.looks import TICK_MS, TICK_NS, Looks, LoopProbe
from tests.load.planted import BEGIN_NS, S, load_result, scripted
from tests.load.standing_still import MS, Client, repeated


def judged(folder: Path, client: Client) -> SelfCheck:
    result = client.result(folder / str(len(list(folder.iterdir()))))
    return check(result, client.workload)


def codes(judgement: SelfCheck) -> set[str]:
    return {reason.code for reason in judgement.reasons}


def looked(*woken_ms: float, began_ns: int = 0) -> Looks:
    probe = LoopProbe(began_ns)
    for at_ms in woken_ms:
        probe.look(began_ns + round(at_ms * MS))
    return Looks.of(probe.report())


# The looks of the probe.


def test_every_tick_that_a_stall_swallowed_counts_with_its_own_lateness() -> None:
    due_ns, late_ms = looked(5, 10, 165, 170).ticks
    assert late_ms == pytest.approx([0, 0, *np.arange(150, -1, -5), 0])
    assert np.diff(due_ns) == pytest.approx(TICK_NS)


def test_a_stall_at_the_very_end_is_noted_although_nobody_is_woken_for_it() -> None:
    probe = LoopProbe(0)
    probe.look(5 * MS)
    probe.end(9 * MS)
    assert len(Looks.of(probe.report()).late_ms) == 1
    probe.end(110 * MS)
    assert Looks.of(probe.report()).stalls.tolist() == [[5 * MS, 110 * MS]]


def test_a_stall_is_as_long_as_it_can_have_been_and_overlaps_no_other() -> None:
    looks = looked(5, 31, 36, 62)
    assert looks.stalls.tolist() == [[5 * MS, 31 * MS], [36 * MS, 62 * MS]]
    since, until = np.array([0, 10, 32, 20, 70]) * MS, np.array([100, 20, 35, 50, 90]) * MS
    assert looks.stood_still_ns(since, until).tolist() == [52 * MS, 10 * MS, 0, 25 * MS, 0]
    assert not len(looked(5 + 0.99 * TICK_MS, 14, 19).stalls), "shorter than a tick"


# The reasons from stalls.


def test_a_late_loop_is_judged_while_a_crowd_is_busy_and_not_while_it_joins(tmp_path: Path) -> None:
    logins, deliveries = np.linspace(0.5, 69.5, 200), np.linspace(70, 99.9, 30_000)
    woken_s = np.arange(0.005, 100, 0.005)

    def judgement(joining_ms: float, busy_ms: float) -> SelfCheck:
        delays = woken_s, np.where(woken_s < 70, joining_ms, busy_ms)
        return check(load_result(tmp_path / str(busy_ms), logins, deliveries, delays), scripted())

    late = judgement(0.05, 4.8)
    assert late.loop_delay_p50_ms == 4.8
    assert any("event-loop delay p50" in reason for reason in late.reasons)
    quiet = judgement(4.8, 0.05)
    assert quiet.loop_delay_p99_ms == pytest.approx(0.05)
    assert quiet.valid


def test_a_worker_stopped_150_ms_every_600_in_a_closed_loop_is_refused(tmp_path: Path) -> None:
    client = Client(repeated(150, 600))
    assert client.printed()["p99"] > 2 * Client().printed()["p99"]
    judgement = judged(tmp_path, client)
    # No request was sent late, and Little's law holds.
    assert judgement.lag_p99_ms == 0
    assert judgement.littles_law_ratio == pytest.approx(1, abs=0.02)
    assert {STALLS, STALLED_TIME, MEAN_DELAY} <= codes(judgement)
    assert judgement.stalled_share == pytest.approx(0.25, abs=0.03)


def test_a_percentile_is_refused_where_so_few_stalls_could_have_moved_it(tmp_path: Path) -> None:
    # 10 users meet each stall: 30 of some 2,000 requests are above the rank of p99.
    judgement = judged(tmp_path, Client([(500, 600), (1500, 1600), (2500, 2600)]))
    assert codes(judgement) - {"generator.loop_delay"} == {STALLS}
    (reason,) = [reason for reason in judgement.reasons if reason.code == STALLS]
    assert reason.text.startswith("the client stood still 3 times, up to 10")
    assert "p99 of" in reason.text


def test_a_long_stall_that_meets_few_requests_of_many_moves_none_of_the_printed(
    tmp_path: Path,
) -> None:
    # One user with 2 ms requests: one of about 1,900 waits most of 60 ms, and is the maximum.
    client = Client([(2000, 2060)], users=1, service_ms=2)
    judgement = judged(tmp_path, client)
    assert judgement.valid
    result = client.result(tmp_path / "again")
    numbers = times_of(result).numbers()
    assert numbers["max"].is_the_clients
    assert 40 < numbers["max"].client_ms < 65
    assert not numbers["p99"].is_the_clients


def test_stalls_that_move_a_number_by_a_tenth_are_refused(tmp_path: Path) -> None:
    """Compare with the truth: the same service times without stalls."""
    random = np.random.default_rng(8)
    passed, moved_and_refused = 0, 0
    for seed in range(40):
        stall_ms, every_ms = int(random.integers(10, 200)), int(random.integers(250, 3900))
        settings = {"users": int(random.choice([0, 1, 10])), "seed": seed, "seconds": 2.0}
        client = Client(repeated(stall_ms, every_ms, 2000), **settings)
        truth, printed = Client(**settings).printed(), client.printed()
        moved = [name for name in truth if abs(printed[name] / truth[name] - 1) > 0.15]
        valid = judged(tmp_path, client).valid
        assert not (moved and valid), f"{client} moved {moved} and passed"
        passed += valid
        moved_and_refused += bool(moved) and not valid
    assert passed > 3
    assert moved_and_refused > 12


def test_many_delays_shorter_than_a_tick_are_refused_by_the_mean(tmp_path: Path) -> None:
    def mean_of(late_ms: float) -> SelfCheck:
        woken_s = np.arange(0.005, 5, 0.005)
        # Two of five looks are late: neither the median nor, for slow services, the p99 shows it.
        delays = np.where(np.arange(len(woken_s)) % 5 < 2, late_ms, 0.01)
        result = load_result(
            tmp_path / str(late_ms), np.linspace(0.4, 5, 200), latency_s=0.01, cpu_ns=S // 10,
            delays=(woken_s, delays),
        )  # fmt: skip
        return check(result, Client(users=0).workload)

    assert MEAN_DELAY not in codes(mean_of(2.4))
    assert MEAN_DELAY in codes(mean_of(2.6))


def test_listeners_of_streams_who_stood_still_are_refused(tmp_path: Path) -> None:
    seconds = np.linspace(1, 9, 2000)

    def streamed(name: str, looks: Looks) -> SelfCheck:
        result = load_result(
            tmp_path / name, np.linspace(0.5, 9, 100), seconds, latency_s=0.02, cpu_ns=S // 10,
            looks=[looks],
        )  # fmt: skip
        return check(result, scripted())

    ticks = np.arange(5, 9500, 5.0)
    awake = ticks[ticks % 300 > 60]
    assert streamed("awake", looked(*ticks, began_ns=BEGIN_NS)).valid
    assert STALLS in codes(streamed("asleep", looked(*awake, began_ns=BEGIN_NS)))


def test_stolen_time_has_a_remark_and_refuses_no_load(tmp_path: Path) -> None:
    work = Client(users=0).workload

    def stolen(share: float) -> SelfCheck:
        done_s = np.linspace(0.4, 5, 500)
        result = load_result(tmp_path / str(share), done_s, cpu_ns=S // 10, steal_share=share)
        return check(result, work)

    assert "host.steal" not in {remark.code for remark in stolen(0.01).warnings}
    assert "host.steal" in {remark.code for remark in stolen(0.02).warnings}
    assert "host.steal" not in codes(stolen(0.5))
