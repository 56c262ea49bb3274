"""Plans of streams, the counts of a load, and the requests that a stop breaks off."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial

import pytest

from perflab.errors import ParameterError
from perflab.load.checks.failures import AroundStop, Part
from perflab.load.workload import ClosedLoop
from perflab.recordings.responses import STOPS
from perflab.systems.llm.stacks import request
from perflab.systems.llm.stream_cost import stop_columns
from perflab.trials.plan import Treatment
from tests.support.synthetic import HOUR_NS
from tests.systems.llm.planted_streams import NUMBER, answers
from tests.systems.planned import plan_of

plan = partial(plan_of, "llm_streaming")
EVERY_SET = ["kinds", "unpaced", "limits", "capacity"]


def loop(treatment: Treatment) -> ClosedLoop:
    assert isinstance(treatment.workload.arrivals, ClosedLoop)
    return treatment.workload.arrivals


def test_all_versions_get_the_same_load_and_differ_only_in_the_mode() -> None:
    for kind in ("stream", "batch", "tools"):
        treatments = [
            treatment for treatment in plan().treatments if treatment.levels["kind"] == kind
        ]
        assert len(treatments) == 3
        assert len({item.workload.model_dump_json() for item in treatments}) == 1
        servers = [dict(item.stack.nodes[1].settings) for item in treatments]
        assert [server.pop("mode") for server in servers] == ["rebuild", "pass", "raw"]
        assert servers[0] == servers[1] == servers[2]


def test_with_and_without_pacing_nothing_else_differs() -> None:
    by_rung = {
        treatment.levels["rung"]: treatment for treatment in plan(sets=["unpaced"]).treatments
    }
    for version in ("old", "new"):
        paced, unpaced = by_rung[f"paced_{version}"], by_rung[f"unpaced_{version}"]
        assert loop(paced).pacing_s == 1.0
        assert loop(unpaced) == loop(paced).model_copy(update={"pacing_s": 0.0})
        assert paced.workload.request == unpaced.workload.request
        assert paced.stack == unpaced.stack


def test_the_published_preset_is_the_study_s_load_of_8_minutes() -> None:
    for treatment in plan(preset="published", sets=["kinds", "limits"]).treatments:
        load = loop(treatment)
        assert load.pacing_s == 20
        assert load.warmup_s + load.duration_s == 480
        is_stress = treatment.levels["max_files"] != "enough"
        assert load.users == (500 if is_stress else 200)
        assert treatment.workload.stop.failures == (5 if is_stress else 0)


def test_tools_are_the_steps_of_one_conversation_with_one_result_more_in_each() -> None:
    sent = request("tools", "proxy", 3, 2)
    # A stream succeeds with more than 2 chunks and its end.
    assert (sent.min_chunks, sent.end_marker) == (3, "[DONE]")
    steps = [json.loads(body) for body in sent.bodies]
    results = [[message["role"] for message in step["messages"]].count("tool") for step in steps]
    assert results == [0, 1, 2]
    assert all(step["temperature"] == 0 for step in steps)


@pytest.mark.promise
def test_sizes_are_compared_only_in_the_published_stress_test() -> None:
    def sizes(**parameters: object) -> dict[str, float | None]:
        return {
            contrast.name: contrast.published_ratio or contrast.published_difference
            for contrast in plan(**parameters).contrasts
        }

    published, pair = sizes(preset="published", sets=["limits"]), "files_512_new against files_512"
    assert published[f"{pair}_old, users at failure"] == pytest.approx(305 / 270)
    assert published[f"{pair}_old, requests at failure"] == pytest.approx(499 / 412)
    assert published[f"{pair}_old, mean"] == -1000
    assert set(sizes(sets=EVERY_SET).values()) == {None}
    for change in ({"stress_users": 400}, {"tokens": 5}, {"token_rate": 2000.0}):
        changed = sizes(preset="published", sets=["limits"], **change)
        assert set(changed.values()) == {None}
    both = sizes(preset="published", sets=["limits"], limits=[64, 512])
    assert {name for name, size in both.items() if size} == {
        name for name, size in published.items() if size
    }


def test_users_of_another_kind_ramp_up_and_are_no_published_test() -> None:
    ramp = plan(preset="published", sets=["limits"], ramp_kind="batch")
    assert [item.levels["rung"] for item in ramp.treatments] == ["batch_512_old", "batch_512_new"]
    assert all(item.workload.request == request("batch", "proxy", 3, 2) for item in ramp.treatments)
    assert {contrast.published_ratio for contrast in ramp.contrasts} == {None}
    assert all("(batch, 512 descriptors)" in contrast.claim for contrast in ramp.contrasts)


def test_without_a_threshold_a_ramp_goes_on_and_nothing_is_said_of_its_users_at_failure() -> None:
    ramp = plan(sets=["limits"], failures=0)
    assert {item.workload.stop.failures for item in ramp.treatments} == {0}
    assert ramp.contrasts == ()


def test_an_answer_that_is_longer_than_the_cycle_is_refused() -> None:
    with pytest.raises(ParameterError, match="the cycle is 1 s, so no user can keep the cycle"):
        plan(tokens=200)


def test_the_cycle_is_held_against_the_slowest_model_of_the_chosen_paced_rungs() -> None:
    assert plan(sets=["unpaced"], tokens=200).treatments
    with pytest.raises(ParameterError, match="the cycle is 1 s, so no user can keep the cycle"):
        plan(sets=["kinds", "unpaced"], tokens=200)
    with pytest.raises(ParameterError, match="the cycle is 1 s, so no user can keep the cycle"):
        plan(sets=["unpaced"], tokens=3000, token_rate=1e6)


UNTIL, AFTER = Part(247, 242, 5, 0, ()), Part(165, 165, 0, 0, ())
STOP = AroundStop(
    failures=5, at_ns=HOUR_NS, after_s=9.0, users=270, until=UNTIL, after=AFTER, under_way=165
)


def test_requests_that_a_stop_breaks_off_count_as_failures() -> None:
    columns = stop_columns(STOP, answers()[0])
    assert {response.name for response in STOPS} <= set(columns)
    assert (columns["users_at_stop"], columns["successes_until_stop"]) == (270, 242)
    # The published table of the old version: 412 requests, 41.3%.
    assert columns["requests_begun"] == 412
    assert columns["failure_share_broken_off"] == pytest.approx(0.413, abs=5e-4)


@pytest.mark.parametrize("stop", [None, replace(STOP, users=0)])
def test_a_load_that_held_all_users_has_a_bound_and_no_number(stop: AroundStop | None) -> None:
    columns = stop_columns(stop, answers()[0])
    assert math.isnan(columns["users_at_stop"])
    assert columns["users_at_stop_at_least"] == NUMBER
    assert math.isnan(columns["requests_begun"]) == (stop is None)
