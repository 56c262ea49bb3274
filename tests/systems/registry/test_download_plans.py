"""The ladder as a plan: the published load, what is compared at it, and what is checked."""

from __future__ import annotations

import pytest

from perflab.errors import ParameterError
from perflab.instruments import OtherLoad
from perflab.load.workload import Burst, OpenLoop
from perflab.stacks.plan import settle
from perflab.systems import experiment
from perflab.systems.registry.downloads import DownloadParameters, expected_s, longest_s
from perflab.systems.registry.rungs import RUNGS, SETS, lanes
from perflab.trials.plan import RunPlan

CHOSEN = "registry_downloads"
FIXES = "the fixes, total duration"


def plan(**parameters: object) -> RunPlan:
    own = experiment(CHOSEN)
    return own.plan(own.check(parameters))


def test_the_published_load_is_a_burst_of_100_in_which_every_byte_is_checked() -> None:
    for treatment in plan(preset="published").treatments:
        load = treatment.workload
        assert isinstance(load.arrivals, Burst)
        assert (load.arrivals.size, load.timeout_s) == (100, 300.0)
        assert load.request.expect_bytes == 24_834_009
        assert load.request.expect_crc32 > 0
        assert load.may_time_out


def test_one_published_download_takes_31_seconds_over_the_link_and_quick_a_tenth() -> None:
    alone = RUNGS["one_client"]
    published = expected_s(DownloadParameters(preset="published"), alone)
    assert published == pytest.approx(31.04, abs=0.01)
    assert expected_s(DownloadParameters(), alone) == pytest.approx(published / 10, rel=1e-3)


def test_sizes_are_compared_at_the_published_load_only_and_as_bounds() -> None:
    (size,) = [each for each in plan(preset="published").contrasts if each.name == FIXES]
    assert size.published_ratio == pytest.approx(63.2 / 301.16)
    assert size.published_bound == "at most"
    assert size in plan(preset="published", rungs="step_0,step_3").contrasts
    for other in ({}, {"preset": "published", "clients": 50},
                  {"preset": "published", "bytes_per_s": 500_000}):  # fmt: skip
        (none,) = [each for each in plan(**other).contrasts if each.name == FIXES]
        assert none.published_ratio is None
        assert not none.published_bound
        assert none.published_direction == "smaller"


def test_every_set_has_the_last_step_to_be_compared_with() -> None:
    assert all("step_3" in names for names in SETS.values())
    for name in SETS:
        assert plan(sets=[name]).treatments
        if name != "threads":
            assert plan(sets=[name]).contrasts


def test_downloads_run_side_by_side_as_threads_allow() -> None:
    # Python's own executor has min(32, cores + 4) threads.
    rungs = ("step_0", "plain_def", "step_1", "step_1_32", "step_2", "async", "ranged")
    side_by_side = [lanes(RUNGS[name], cores=2) for name in rungs]
    assert side_by_side == [1, 40, 6, 32, 100, None, 100]
    assert lanes(RUNGS["step_1"], cores=64) == 32


def test_a_load_from_inside_is_compared_with_the_same_rung_from_outside_in_the_same_block() -> None:
    own = plan(sets=["inside"], preset="published")
    named = {each.name: each for each in own.contrasts}
    for rung in ("step_0", "plain_def", "step_1", "step_3"):
        for words in ("successful as told", "total duration as told"):
            found = named[f"{rung}_inside against {rung}, {words}"]
            assert found.published_direction is None
            assert found.response.startswith("told_")
    published = named["step_3_inside against step_0_inside, successful as told"]
    assert published.published_difference == 100
    assert own.factors["load_from"] == ("outside", "inside")


def test_with_the_load_from_inside_the_lab_only_probes_and_no_service_is_shared() -> None:
    own = plan(sets=["inside"], clients=7, timeout_s=9)
    for treatment in own.treatments:
        from_inside = treatment.levels["load_from"] == "inside"
        assert from_inside == isinstance(treatment.workload.arrivals, OpenLoop)
        last = treatment.instruments[-1]
        assert from_inside == isinstance(last, OtherLoad), "it must be the first to end"
        if isinstance(last, OtherLoad):
            asked = {"num_clients": 7, "model_id": "arnir0/Tiny-LLM", "duration_seconds": 9}
            assert last.body == asked
    serving = settle({each.name: each.stack for each in own.treatments}).serving
    assert len({nodes["registry"] for nodes in serving.values()}) == len(own.treatments)
    assert len({nodes["store"] for nodes in serving.values()}) == 1


def test_a_loop_that_is_held_up_is_waited_for_until_all_downloads_are_through() -> None:
    asked = DownloadParameters(sets=("inside",))
    # One after the other, 100 downloads of 3.1 s: ten times the time-out that nobody can notice.
    assert longest_s(asked, RUNGS["step_0_inside"]) > asked.timeout_s + 100 * 3.1
    assert longest_s(asked, RUNGS["step_3_inside"]) < 100


def test_the_services_own_generator_takes_whole_seconds() -> None:
    assert plan(sets=["ladder"], timeout_s=2.5)
    with pytest.raises(ParameterError, match="takes whole seconds"):
        plan(sets=["inside"], timeout_s=2.5)


def test_a_service_that_still_works_off_a_queue_is_met_by_no_other_trial() -> None:
    with pytest.raises(ParameterError, match="the queue of another"):
        plan(fresh_blocks=2)
