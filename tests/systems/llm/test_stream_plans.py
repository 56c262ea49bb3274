"""Streams as a plan, what is counted of a load, and what a stop breaks off."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from perflab.errors import ParameterError
from perflab.load.checks.failure_causes import AroundStop, Part
from perflab.load.records.looks import FailureStop
from perflab.load.workload import ClosedLoop
from perflab.systems import experiment
from perflab.systems.llm.service import request
from perflab.systems.llm.stream_cost import begun_columns, miscounted, success_share
from perflab.trials.plan import RunPlan, Treatment
from tests.support.synthetic import HOUR_NS
from tests.systems.llm.planted_streams import NUMBER, answers

EVERY_SET = ["kinds", "unpaced", "limits", "capacity"]


def plan(**parameters: object) -> RunPlan:
    own = experiment("llm_streaming")
    return own.plan(own.check(parameters))


def loop(treatment: Treatment) -> ClosedLoop:
    assert isinstance(treatment.workload.arrivals, ClosedLoop)
    return treatment.workload.arrivals


def test_all_versions_get_the_same_load_and_differ_in_the_mode_alone() -> None:
    for kind in ("stream", "batch", "tools"):
        own = [each for each in plan().treatments if each.levels["kind"] == kind]
        assert len(own) == 3
        assert len({each.workload.model_dump_json() for each in own}) == 1
        servers = [dict(each.stack.nodes[1].settings) for each in own]
        assert [server.pop("mode") for server in servers] == ["rebuild", "pass", "raw"]
        assert servers[0] == servers[1] == servers[2]


def test_with_and_without_pacing_nothing_else_differs() -> None:
    found = {each.levels["rung"]: each for each in plan(sets=["unpaced"]).treatments}
    for version in ("old", "new"):
        paced, free = found[f"paced_{version}"], found[f"unpaced_{version}"]
        assert loop(paced).pacing_s == 1.0
        assert loop(free) == loop(paced).model_copy(update={"pacing_s": 0.0})
        assert paced.workload.request == free.workload.request
        assert paced.stack == free.stack


def test_the_published_preset_is_the_study_s_load_of_8_minutes() -> None:
    for treatment in plan(preset="published", sets=["kinds", "limits"]).treatments:
        load = loop(treatment)
        assert load.pacing_s == 20
        assert load.warmup_s + load.duration_s == 480
        is_stress = treatment.levels["max_files"] != "enough"
        assert load.users == (500 if is_stress else 200)
        assert treatment.workload.stop.failures == (5 if is_stress else 0)


def test_a_stream_succeeds_with_more_than_2_chunks_and_its_end() -> None:
    for treatment in plan(sets=EVERY_SET).treatments:
        asked = treatment.workload.request
        if treatment.levels["kind"] == "batch":
            assert asked.stream is None
        else:
            assert asked.min_chunks == 3
            assert asked.end_marker


def test_tools_are_the_steps_of_one_conversation_with_one_result_more_in_each() -> None:
    steps = [json.loads(body) for body in request("tools", "proxy", 3, 2).bodies]
    results = [[one["role"] for one in step["messages"]].count("tool") for step in steps]
    assert results == [0, 1, 2]
    assert all(step["temperature"] == 0 for step in steps)


def test_sizes_are_compared_in_the_published_stress_test_alone() -> None:
    def sizes(**parameters: object) -> dict[str, float | None]:
        return {each.name: each.published_ratio for each in plan(**parameters).contrasts}

    own = sizes(preset="published", sets=["limits"])
    assert own["files_512_new against files_512_old, users at failure"] == pytest.approx(305 / 270)
    assert own["files_512_new against files_512_old, requests at failure"] == pytest.approx(
        499 / 412
    )
    assert set(sizes(sets=EVERY_SET).values()) == {None}
    changed = sizes(preset="published", sets=["limits"], stress_users=400)
    assert set(changed.values()) == {None}


def test_requests_with_a_constant_cycle_are_set_by_the_load_and_judged_by_nothing() -> None:
    (own,) = [
        each for each in plan(sets=["unpaced"]).contrasts
        if each.name == "paced_new against paced_old, answers per second"
    ]  # fmt: skip
    assert own.set_by_load


def test_an_answer_that_is_longer_than_the_cycle_is_refused() -> None:
    with pytest.raises(ParameterError, match="the cycle is 1 s: no user could keep it"):
        plan(tokens=200)


def test_what_failed_is_no_success_and_what_the_load_s_end_cut_off_is_neither() -> None:
    requests, _ = answers(failed=10)
    assert success_share(requests, unsent=0) == pytest.approx(0.75)
    assert success_share(requests, unsent=10) == pytest.approx(0.6)
    requests.loc[:9, "error"] = "aborted"
    assert success_share(requests, unsent=0) == pytest.approx(20 / 30)


def test_a_proxy_that_completed_fewer_than_were_answered_is_found_out() -> None:
    requests, _ = answers(failed=5)
    assert miscounted(requests, NUMBER - 5) == ""
    assert "completed 34 requests" in miscounted(requests, NUMBER - 6)
    # Of what failed it may have completed some, and no more.
    assert miscounted(requests, NUMBER) == ""
    assert miscounted(requests, NUMBER + 1)


def part(requests: int, failures: int) -> Part:
    return Part(requests, requests - failures, failures, 0, ())


def test_a_failure_rate_that_counts_what_a_stop_breaks_off_is_no_5_of_all() -> None:
    stop = FailureStop(at_ns=HOUR_NS, after_s=9.0, failures=5, users=270)
    found = begun_columns(AroundStop(stop, part(247, 5), part(165, 0), 165), pd.DataFrame())
    # The published table of the old version: 412 requests, 41.3%.
    assert found["requests_begun"] == 412
    assert found["failure_share_broken_off"] == pytest.approx(0.413, abs=5e-4)


def test_a_load_that_held_all_users_has_a_bound_and_no_number() -> None:
    requests, _ = answers()
    found = begun_columns(None, requests)
    assert found["users_at_stop_at_least"] == NUMBER
    assert math.isnan(found["requests_begun"])
