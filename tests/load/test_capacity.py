"""The capacity search on servers whose capacity is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from perflab.errors import LoadError
from perflab.load.capacity import Capacity, Probe, ProbeLoad, at_level, judged, search
from perflab.load.checks.trend import trend_of
from perflab.load.report import UNSEEN
from perflab.load.summary import JudgedObjective, LoadSummary, TimesMs
from perflab.load.workload import ClosedLoop, Objective, OpenLoop, Request, Stage, Workload
from perflab.recordings import Reason

LATE = Reason(code="generator.late", side="client", text="the client was late")
SLEPT = Reason(code="host.clock_step", text="the machine slept")


def server(capacity: float) -> Callable[[float], Probe]:
    return lambda level: Probe(level, missed=("p99",) if level > capacity else ())


@pytest.mark.parametrize("capacity", [3.0, 130.0, 777.0, 5000.0, 12345.0])
@pytest.mark.parametrize("start", [1.0, 100.0, 9000.0])
def test_the_limit_lies_within_the_interval_and_the_interval_is_narrow(
    capacity: float, start: float
) -> None:
    result = search(server(capacity), start, most=1e6)
    assert result.limit == "server"
    assert result.high is not None
    assert result.low <= capacity < result.high
    if result.low:
        assert result.high / result.low <= 1.06


@pytest.mark.parametrize(
    ("spoilt", "limit", "text"),
    [
        ({"faults": (LATE,)}, "client", "beyond it the client is the limit"),
        ({"unclear": (SLEPT,)}, "unknown", "it is unknown whose limit 400 is (the machine slept)"),
    ],
)
def test_a_limit_of_the_client_or_of_unknown_side_is_not_reported_as_the_servers(
    spoilt: dict[str, Any], limit: str, text: str
) -> None:
    result = search(lambda level: Probe(level, **(spoilt if level > 300 else {})), 100, most=1e6)
    assert (result.limit, result.low, result.high) == (limit, 200, 400)
    assert text in result.sentence


def test_a_level_that_failed_in_some_tries_is_named() -> None:
    tries = (Probe(766.083), Probe(800, missed=("p99",)), Probe(800), Probe(800, missed=("p99",)))
    assert Capacity(766.083, None, "range", tries).sentence == (
        "at least 766; 800 failed in 2 of 3 tries, which is not certain"
    )


@pytest.mark.parametrize("beyond", [{"faults": (LATE,)}, {}])
def test_at_least_is_said_of_a_level_only_where_all_its_probes_held(beyond: dict[str, Any]) -> None:
    levels: list[float] = []

    def probe(level: float) -> Probe:
        levels.append(level)
        if level > 300:
            return Probe(level, **beyond)
        # One of three probes at 200 misses.
        missed = ("p99",) if level == 200 and levels.count(level) == 1 else ()
        return Probe(level, missed=missed)

    # The level of 200 is the last before the client's limit, or the end of the range.
    result = search(probe, 100, most=1e6 if beyond else 200)
    assert (result.limit, result.low) == ("client" if beyond else "range", 100)


@pytest.mark.parametrize("spoilt", [{"faults": (LATE,)}, {"unclear": (SLEPT,)}])
def test_a_probe_spoilt_by_one_stall_is_repeated(spoilt: dict[str, tuple[str, ...]]) -> None:
    levels: list[float] = []

    def probe(level: float) -> Probe:
        levels.append(level)
        missed = ("p99",) if level > 150 else ()
        # The first and the third probe of every level.
        return Probe(level, **spoilt) if levels.count(level) in (1, 3) else Probe(level, missed)

    result = search(probe, 100, most=1e6, repeats=3)
    assert result.limit == "server"
    assert result.low <= 150 < (result.high or 0)


def test_noisy_probes_widen_the_interval_to_levels_that_agreed() -> None:
    random = np.random.default_rng(5)

    def probe(level: float) -> Probe:
        holds = random.random() < 1 / (1 + np.exp((level - 1000) / 60))
        return Probe(level, missed=() if holds else ("p99",))

    inside = 0
    for _ in range(40):
        result = search(probe, 200, most=1e5)
        assert isinstance(result, Capacity)
        inside += result.low <= 1000 <= (result.high or 1e5)
    assert inside >= 30


def found(text: str, found_ms: float | None, held: bool | None, why: str = "") -> JudgedObjective:
    below_ms = float(text.partition("<")[2].removesuffix("ms"))
    return JudgedObjective.model_construct(
        objective=text, found_ms=found_ms, held=held, below_ms=below_ms, why=why
    )


HELD, MISSED = found("p99<45ms", 40.0, True), found("gap_p99<39ms", 40.0, False)
UNKNOWN = found("ttft_p95<35ms", None, None)


def shown(
    *objectives: JudgedObjective, p50_ms: float = 10.0, paced_rps: float = 0.0, **changes: Any
) -> ProbeLoad:
    facts = {
        "requests": 1000, "errors": 0, "offered_rps": 100.0, "throughput_rps": 100.0,
        "reasons": (), "duration_s": 10.0, "response_growth_ms_per_s": 0.0, **changes,
    }  # fmt: skip
    times = TimesMs(ms={"p50": p50_ms})
    summary = LoadSummary.model_construct(response_time=times, objectives=objectives, **facts)
    return ProbeLoad(summary, window_s=summary.duration_s, paced_rps=paced_rps)


def test_a_probe_misses_by_objective_errors_throughput_or_growth() -> None:
    assert judged(100, shown(HELD)).missed == ()
    assert judged(100, shown(HELD, MISSED)).missed == ("gap_p99 40 ms > 39 ms",)
    assert "failed" in judged(100, shown(HELD, errors=20)).missed[0]
    assert "answered" in judged(100, shown(HELD, throughput_rps=90.0)).missed[0]
    assert "grows" in judged(100, shown(HELD, response_growth_ms_per_s=1.0)).missed[0]
    faults = [LATE, Reason(code="server.failures", side="server", text="20 of 1000 failed")]
    assert judged(100, shown(HELD, MISSED, reasons=faults)).faults == (faults[0],)
    # Whatever the client added, the objective was held.
    assert judged(100, shown(HELD, reasons=faults)).faults == ()
    own = found("gap_p99<39ms", 40.0, None, "up to 5 ms of 40 ms are the client's own")
    (fault,) = judged(100, shown(own)).faults
    assert (fault.side, fault.text) == ("client", own.why)
    slept = judged(100, shown(HELD, reasons=[SLEPT]))
    assert (slept.faults, slept.unclear) == ((), (SLEPT,))


def test_a_level_whose_answers_are_unlike_those_before_it_does_not_hold() -> None:
    other = Reason(code=UNSEEN, side="server", text="99% of the answers have the key error")
    assert judged(100, shown(HELD, reasons=(other,))).missed == (other.text,)


def test_answers_that_come_after_the_probe_are_no_miss_unless_a_queue_builds_up() -> None:
    slow = {"offered_rps": 2.0, "duration_s": 40.0, "p50_ms": 5000.0}
    assert judged(2, shown(HELD, throughput_rps=1.76, **slow)).missed == ()
    assert "answered" in judged(2, shown(HELD, throughput_rps=1.6, **slow)).missed[0]
    # In a queue that grows to a second, half of it is the median.
    queue = {"p50_ms": 500.0, "response_growth_ms_per_s": 100.0}
    grows, answered = judged(100, shown(HELD, throughput_rps=93.0, **queue)).missed
    assert ("grows" in grows, "answered" in answered) == (True, True)


def test_all_users_join_before_what_counts_in_a_search_and_before_the_end_of_any_load() -> None:
    arrivals = ClosedLoop(users=10, duration_s=120, ramp_s=60)
    work = Workload(request=Request(), arrivals=arrivals)
    probe = at_level(work, 40, duration_s=3, warmup_s=0.6).arrivals
    assert isinstance(probe, ClosedLoop)
    assert (probe.users, probe.ramp_s) == (40, 0.6)
    with pytest.raises(ValidationError, match="not all users would join"):
        ClosedLoop(users=10, duration_s=30, ramp_s=60)


def test_too_few_answers_are_a_miss_of_users_who_fell_behind_and_else_an_error() -> None:
    behind = shown(UNKNOWN, offered_rps=None, throughput_rps=10.0, paced_rps=40.0)
    assert judged(40, behind).missed == ("ttft_p95 unknown",)
    with pytest.raises(LoadError, match="too few to know ttft_p95"):
        judged(5, shown(UNKNOWN))


def test_growth_is_found_in_a_queue_and_not_in_noise() -> None:
    random = np.random.default_rng(2)
    planned = np.arange(2000) * 5_000_000
    noise = random.lognormal(2, 0.5, 2000) * 1e6
    slopes = [trend_of(planned, random.permutation(noise)).ms_per_s for _ in range(50)]
    assert sum(value > 0 for value in slopes) <= 2
    queue = noise + planned * 0.02
    assert trend_of(planned, queue).ms_per_s == pytest.approx(20, rel=0.1)
    assert trend_of(planned, np.full(2000, 1e6)).ms_per_s == 0
    assert trend_of(planned[:20], queue[:20]).ms_per_s == 0


@pytest.mark.parametrize(("share", "needed"), [(99, 368), (99.9, 3688)])
def test_a_probe_is_long_enough_for_the_percentile_it_judges(share: float, needed: int) -> None:
    stages = (Stage(rate=10, duration_s=1),)
    objectives = (Objective(percentile=share, below_ms=5),)
    work = Workload(request=Request(), arrivals=OpenLoop(stages=stages), objectives=objectives)
    changed = at_level(work, 100, 2.0, 0.5).arrivals
    assert isinstance(changed, OpenLoop)
    assert needed <= (changed.duration_s - 0.5) * 100 <= 1.2 * needed
