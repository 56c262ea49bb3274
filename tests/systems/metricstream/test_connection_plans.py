"""Plans of the life cycle, checks of a load of posts, and the rule of who limited the rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.evaluation import evaluate
from perflab.analysis.results import AgainstStudy
from perflab.analysis.verdict import judge
from perflab.errors import ParameterError
from perflab.instruments import OtherLoad, Requests, ServerCount
from perflab.instruments.requests import miscounted, success_share
from perflab.load.clients.outcome import CUT_OFF_CODES
from perflab.load.workload import ClosedLoop, OpenLoop
from perflab.paths import services_dir
from perflab.recordings import Run
from perflab.stacks.plan import Node
from perflab.statistics import interim_analysis
from perflab.statistics.comparison import effect_of
from perflab.systems.metricstream.connection_cost import ConnectionCost
from perflab.systems.metricstream.rules import (
    CLIENT,
    MAIN,
    NOBODY,
    NOT_DECIDED,
    SERVER,
    blocks_of,
    effect_in,
    judged_claims,
    pairs_of,
    word_of,
)
from perflab.systems.metricstream.rungs import LADDER, OF_THE_LAB
from perflab.trials.plan import Treatment
from perflab.trials.treatment_records import stack_record
from tests.load.planted import load_result
from tests.systems.metricstream.planted_connections import (
    NUMBER,
    posts,
)
from tests.systems.planned import plan_of, write_planned

plan = partial(plan_of, "connection_lifecycle")


def test_a_published_range_is_contradicted_by_less_than_its_low_end() -> None:
    (kept_alive,) = (
        contrast
        for contrast in plan(sets=("saturation",)).contrasts
        if contrast.name == "full_pool_keeps_reused against full_pool_closes_new, throughput"
    )
    factors = {2.33: AgainstStudy.LESS, 4.0: AgainstStudy.AS_PUBLISHED}
    for factor, result in factors.items():
        logs = [math.log(factor) + 0.001 * number for number in range(8)]
        assert judge(effect_of(pd.Series(logs)), kept_alive).result is result


def test_keep_alive_has_a_published_size_at_the_clients_of_the_study_alone() -> None:
    for changes, is_sized in (
        ({}, True), ({"server_cpus": 0.1, "backend": "docker"}, True), ({"clients": 5}, False),
    ):  # fmt: skip
        (kept_alive,) = (
            contrast
            for contrast in plan(sets=("saturation",), **changes).contrasts
            if contrast.name == "full_pool_keeps_reused against full_pool_closes_new, throughput"
        )
        assert (kept_alive.published_ratio is not None) == is_sized


def test_every_phase_gets_the_published_load_and_phase_7_alone_reuses_connections() -> None:
    for treatment in plan().treatments:
        load = treatment.workload
        assert isinstance(load.arrivals, OpenLoop)
        assert [stage.rate for stage in load.arrivals.stages] == [2000.0]
        assert load.connections.most == 100
        reuses = treatment.levels["rung"] == "phase_7"
        assert load.connections.closing != reuses
        (server,) = treatment.stack.nodes
        assert (server.settings["keep_alive"] == "on") == reuses


@pytest.mark.promise
@pytest.mark.parametrize(
    ("changes", "different"),
    [
        ({}, ""),
        ({"preset": "published"}, ""),
        ({"duration_s": 3.0, "blocks": 12}, ""),
        ({"closed_requests": 500}, ""),
        ({"clients": 2}, "clients is 2 (published: 100)"),
        ({"target_rate": 500.0}, "target_rate is 500 (published: 2000)"),
        ({"server_cpus": 0.1, "backend": "docker"}, "server_cpus is 0.1"),
        ({"timeout_s": 0.01}, "timeout_s is 0.01 (not published, by default: 1)"),
    ],
)
def test_a_level_is_judged_at_the_load_of_the_study_alone(
    changes: dict[str, Any], different: str
) -> None:
    of_run = plan(rungs="phase_7", **changes)
    levels = [contrast for contrast in of_run.contrasts if contrast.scale == "level"]
    assert len(levels) == (0 if different else 2)
    told = [str(remark) for remark in of_run.warnings if remark.code == "metricstream.load"]
    assert [different in text for text in told] == [True] * bool(different)


def test_each_phase_changes_what_it_is_named_after_and_nothing_else() -> None:
    # Phases 4 and 5 are two other stores for phase 3.
    before = {
        "phase_1": "sequential", "phase_2": "phase_1", "phase_3": "phase_2", "phase_4": "phase_3",
        "phase_5": "phase_3", "phase_6": "phase_5", "phase_7": "phase_6",
        "long_linear": "long_quadratic",
    }  # fmt: skip
    rungs = LADDER.rungs
    changed = {
        phase: set(dict(rungs[phase].settings.items() - rungs[earlier].settings.items()))
        for phase, earlier in before.items()
    }
    assert changed == {
        "phase_1": {"threading", "threads"}, "phase_2": {"threading"}, "phase_3": {"parser"},
        "phase_4": {"store"}, "phase_5": {"store"}, "phase_6": {"threading"},
        "phase_7": {"keep_alive"}, "long_linear": {"parser"},
    }  # fmt: skip


def test_a_cpu_limit_reaches_only_the_server_and_is_recorded() -> None:
    run_plan = plan(sets=["saturation", "naive"], server_cpus=0.2)
    for treatment in run_plan.treatments:
        if treatment.levels["load"] == "100 users":
            assert isinstance(treatment.workload.arrivals, ClosedLoop)
            assert treatment.workload.arrivals.keep_up
        limits = {node.name: node.cpus for node in treatment.stack.nodes}
        assert limits.pop("metricstream") == 0.2
        assert set(limits.values()) <= {None}, "the naive client is not limited"
        written = stack_record(treatment.stack)["nodes"][0]
        assert (written["name"], written["cpus"]) == ("metricstream", 0.2)
    (remark,) = [
        warning for warning in run_plan.warnings if warning.code == "metricstream.cpu_limit"
    ]
    assert "0.2 CPUs, by a quota of 2 ms of CPU time in every period of 10 ms" in remark


@pytest.mark.parametrize("cpus", [0.09, 65])
def test_a_cpu_limit_that_the_kernel_does_not_accept_is_refused_before_the_run(cpus: float) -> None:
    with pytest.raises(ParameterError, match="server_cpus"):
        plan(server_cpus=cpus)


def test_clients_who_wait_for_answers_keep_the_target_rate_at_most(tmp_path: Path) -> None:
    (treatment,) = plan(rungs="phase_1", loop="closed").treatments
    users = treatment.workload.arrivals
    assert isinstance(users, ClosedLoop)
    assert users.users / users.pacing_s == 2000.0
    assert users.duration_s == 0.6
    assert (treatment.levels["load"], treatment.workload.connections.most) == (
        "2000/s by 100 users", 0,
    )  # fmt: skip
    (cost,) = [item for item in treatment.instruments if isinstance(item, ConnectionCost)]
    result = load_result(tmp_path, np.linspace(1, 2, 90))
    samples = pd.DataFrame({"service": []})
    load: Any = SimpleNamespace(result=result, samples=samples)
    for target, share in ((2 * result.throughput_rps, 0.5), (result.throughput_rps / 2, 1.0)):
        achieved = cost.model_copy(update={"target_rate": target}).observe(load)
        assert achieved.columns["success_share"] == pytest.approx(share)


def test_requests_that_were_never_sent_are_no_successes(tmp_path: Path) -> None:
    errors = {"timeout": 10, "aborted": 10}
    result = load_result(tmp_path, np.linspace(1, 2, 90), errors=errors, unsent=10)
    assert success_share(result) == pytest.approx(0.7)
    assert success_share(result, CUT_OFF_CODES) == pytest.approx(70 / 90)


def test_a_server_that_took_fewer_samples_than_it_answered_for_is_detected() -> None:
    requests = posts()
    assert not miscounted(requests, 3 * NUMBER, of_each=3)
    assert "counted 149" in miscounted(requests, 3 * NUMBER - 1, of_each=3)[0]
    assert miscounted(requests, 3 * NUMBER + 1, of_each=3)
    # The server may or may not have taken a request that timed out.
    requests.loc[0, "error"] = "timeout"
    assert not miscounted(requests, 3 * NUMBER, of_each=3)
    assert not miscounted(requests, 3 * NUMBER - 3, of_each=3)


@pytest.mark.promise
def test_a_trial_is_refused_where_the_server_counted_too_few_metrics_of_a_request() -> None:
    by_rung = {treatment.levels["rung"]: treatment for treatment in plan().treatments}
    (count,) = [
        item for item in by_rung["long_linear"].instruments if isinstance(item, ServerCount)
    ]
    told = {"metricstream": {"samples_taken": 60 * NUMBER - 1}}
    scene: Any = SimpleNamespace(counts=told.get)
    sensor = count.sensor(scene)
    sensor.after()
    load: Any = SimpleNamespace(result=SimpleNamespace(requests=posts()))
    observation = sensor.observe(load)
    assert observation.columns == {"server_count": 2999}
    (reason,) = observation.reasons
    assert "the server counted 2999, but the client sent 3000 at most" in reason


TARGET = 2000.0
ROOM: Mapping[str, float] = {
    "cpu_share_metricstream": 0.3,
    "cpu_share_naive_client": 0.2,
    "accept_queue_max_metricstream": 0.0,
    "accept_drops_metricstream": 0.0,
}
# Columns of a trial, by its rung and block.
Planted = Callable[[str, int], Mapping[str, Any]]


def planted(
    naive: float, lab: float, lab_columns: Mapping[str, float] = ROOM, **naive_columns: float
) -> Planted:
    """Plant shares of the target; ``naive_columns`` are of the naive client's trials only."""

    def columns_of(rung: str, block: int) -> Mapping[str, Any]:
        if rung in OF_THE_LAB:
            share = naive * (1 + 0.002 * block)
            counted = {"told_success_rate": share, "told_achieved_rps": share * TARGET}
            return {**ROOM, **counted, **naive_columns}
        return {**lab_columns, "success_share": lab, "throughput_rps": lab * TARGET}

    return columns_of


def run_of(
    folder: Path, columns: Planted, blocks: int = 6, cores: int = 8, **parameters: object
) -> Run:
    def plant(treatment: Treatment, block: int, _: int) -> tuple[Any, None, Any]:
        return dict(columns(treatment.levels["rung"], block)), None, {}

    wanted = {"sets": ("naive",), "blocks": blocks, **parameters}
    return write_planned(folder, "connection_lifecycle", plant, cores, **wanted)


FULL = {**ROOM, "cpu_share_metricstream": 0.97}
BELOW = "in the direction published"
# The planted columns, the word of the pairs, and the verdict on claim 4.
CASES = {
    "the naive client falls short, the lab's does not": (planted(0.5, 1.0), CLIENT, BELOW),
    "both reach the target": (planted(0.99, 1.0), NOBODY, "the other way"),
    "neither does, the server is full": (
        planted(0.5, 0.6, FULL, cpu_share_metricstream=0.97), SERVER, "the other way",
    ),
    "the naive client alone fills the server": (
        planted(0.5, 1.0, cpu_share_metricstream=0.97), NOT_DECIDED, "not decided",
    ),
    "clients wait to be accepted": (
        planted(0.5, 1.0, accept_queue_max_metricstream=50.0), NOT_DECIDED, "not decided",
    ),
    "connections are dropped": (
        planted(0.5, 1.0, accept_drops_metricstream=1.0), NOT_DECIDED, "not decided",
    ),
    "the kernel tells nothing of the queue": (
        planted(0.5, 1.0, accept_queue_max_metricstream=math.nan), NOT_DECIDED, "not decided",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "word", "verdict"), CASES.values(), ids=CASES)
def test_evidence_decides_the_word_of_a_pair_and_the_verdict_on_claim_4(
    columns: Planted, word: str, verdict: str, tmp_path: Path
) -> None:
    run = run_of(tmp_path, columns)
    assert pairs_of(run)
    assert [word_of(blocks_of(run, pair)) for pair in OF_THE_LAB] == [word] * 3
    (claim,) = judged_claims(run)
    assert (str(claim.verdict), word in claim.verdict.reason) == (verdict, True)


@pytest.mark.parametrize(
    ("used_cores", "without_room", "with_room"),
    [
        # A naive client on the cores of the server must leave room, too.
        ((0.5, 0.45), {"cores": 2}, {"cores": 8}),
        # A server that uses all of its share of a core has no room.
        ((0.24, 0.2), {"server_cpus": 0.25}, {"server_cpus": 0.5}),
    ],
)
def test_room_depends_on_the_cores_that_the_server_may_use(
    used_cores: tuple[float, float],
    without_room: dict[str, Any],
    with_room: dict[str, Any],
    tmp_path: Path,
) -> None:
    server, client = used_cores
    columns = planted(0.5, 1.0, cpu_share_metricstream=server, cpu_share_naive_client=client)
    for limits, word in ((without_room, NOT_DECIDED), (with_room, CLIENT)):
        run = run_of(tmp_path / word, columns, 3, **limits)
        assert word_of(blocks_of(run, MAIN)) == word


@pytest.mark.parametrize(
    ("others", "blocks", "word"), [(1, 4, CLIENT), (2, 5, NOT_DECIDED), (0, 2, NOT_DECIDED)]
)
def test_a_word_needs_three_blocks_and_most_of_them(
    others: int, blocks: int, word: str, tmp_path: Path
) -> None:
    def columns(rung: str, block: int) -> Mapping[str, Any]:
        return planted(0.99 if block < others else 0.5, 1.0)(rung, block)

    run = run_of(tmp_path, columns, blocks)
    assert word_of(blocks_of(run, MAIN)) == word


def test_blocks_after_the_last_look_count_in_no_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path, planted(0.5, 1.0), 10)
    monkeypatch.setattr(Run, "judged_blocks", 8)
    assert list(blocks_of(run, MAIN).index) == [*range(8)]
    rule = interim_analysis.planned(8, 20)
    run.record = run.record.model_copy(update={"until_decided": rule})
    effect = effect_in(run, blocks_of(run, MAIN))
    assert effect is not None
    assert effect.looks is not None


@pytest.mark.promise
@pytest.mark.parametrize(
    ("before", "verdict"),
    [(1.0, "not testable here (set by the load)"), (0.81, "in the direction published")],
)
def test_a_success_that_was_complete_before_cannot_rise(
    tmp_path: Path, before: float, verdict: str
) -> None:
    def columns(rung: str, block: int) -> Mapping[str, Any]:
        drift = 0.002 * block if before < 1 else 0.0
        return {**ROOM, "success_share": before + drift if rung == "sequential" else 1.0}

    run = run_of(tmp_path, columns, blocks=10, sets=("phases",))
    name = "phase_1 against sequential, success"
    (finding,) = (item for item in evaluate(run) if item.contrast.name == name)
    assert str(finding.verdict) == verdict
    assert ("both sides have 100%" in finding.verdict.reason) == (before == 1)


def test_both_generators_get_the_same_server_and_load_in_every_block() -> None:
    by_rung = {treatment.levels["rung"]: treatment for treatment in plan(sets=["naive"]).treatments}
    source = (services_dir() / "naive_client" / "src" / "naive_client.cpp").read_text()
    sent_by_the_naive_client = source.partition('R"(')[2].partition(')"')[0]
    for naive, match in OF_THE_LAB.items():
        server, client = by_rung[naive].stack.nodes
        assert (server,) == by_rung[match].stack.nodes, "one server serves both"
        assert isinstance(client, Node)
        assert client.needs == {"target": server.name}
        (probes,) = [item for item in by_rung[naive].instruments if isinstance(item, Requests)]
        assert (probes.prefix, by_rung[naive].workload.request.path) == ("probe_", "/health")
        last = by_rung[naive].instruments[-1]
        assert isinstance(last, OtherLoad), "it must be the first to end"
        reuses = by_rung[match].levels["connection"] == "keep_alive"
        assert client.settings == {
            "clients": 100, "rate": 2000.0, "timeout_ms": 1000, "duration_s": pytest.approx(0.8),
            "connection": "persistent" if reuses else "per_request",
        }  # fmt: skip
        assert by_rung[match].workload.request.body == sent_by_the_naive_client
