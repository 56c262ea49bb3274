"""The ladder as a plan: the published load, what is compared at it, and what is checked."""

from __future__ import annotations

import pytest

from perflab.errors import ParameterError
from perflab.load.workload import Burst
from perflab.systems import experiment
from perflab.systems.registry.downloads import DownloadParameters, expected_s
from perflab.systems.registry.rungs import RUNGS, SETS, chosen, lanes
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
        assert (load.arrivals.size, load.arrivals.waves, load.timeout_s) == (100, 1, 300.0)
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


def test_rungs_that_two_sets_share_are_measured_once() -> None:
    names = [*chosen(("pools", "clients", "ladder"))]
    assert names.count("step_3") == 1
    assert len(names) == len(set(names)) == 11


def test_a_service_that_still_works_off_a_queue_is_met_by_no_other_trial() -> None:
    with pytest.raises(ParameterError, match="the queue of another"):
        plan(fresh_blocks=2)
