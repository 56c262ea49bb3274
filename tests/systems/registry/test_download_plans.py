"""Plans of the ladder: the published load, its contrasts, and checks of parameters."""

from __future__ import annotations

from functools import partial

import pytest

from perflab.errors import ParameterError
from perflab.instruments import OtherLoad
from perflab.load.workload import Burst, OpenLoop
from perflab.stacks.plan import settle
from perflab.systems.registry.rungs import RUNGS, lanes
from tests.systems.planned import plan_of

plan = partial(plan_of, "registry_downloads")
FIXES = "the fixes, total duration"


def test_the_published_load_is_a_burst_of_100_in_which_every_byte_is_checked() -> None:
    for treatment in plan(preset="published").treatments:
        load = treatment.workload
        assert isinstance(load.arrivals, Burst)
        assert (load.arrivals.size, load.timeout_s) == (100, 300.0)
        assert load.request.expect_bytes == 24_834_009
        assert load.request.expect_crc32 > 0
        assert load.may_time_out


def test_sizes_are_compared_at_the_published_load_only_and_as_bounds() -> None:
    (size,) = [
        contrast for contrast in plan(preset="published").contrasts if contrast.name == FIXES
    ]
    assert size.published_ratio == pytest.approx(63.2 / 301.16)
    assert size.published_bound == "at most"
    assert size in plan(preset="published", rungs="plain_def,step_3").contrasts
    assert size in plan(preset="published", shared_bytes_per_s=39_296_264).contrasts
    both = {"bytes_per_s": 1_954_486, "shared_bytes_per_s": 39_296_264}
    assert size in plan(preset="published", **both).contrasts
    for other in ({}, {"preset": "published", "clients": 50},
                  {"preset": "published", "bytes_per_s": 1_954_486},
                  {"preset": "published", **both, "bytes_per_s": 500_000},
                  {"preset": "published", "bytes_per_s": 500_000},
                  {"preset": "published", "shared_bytes_per_s": 50_000_000}):  # fmt: skip
        (contrast_without_size,) = [
            contrast for contrast in plan(**other).contrasts if contrast.name == FIXES
        ]
        assert contrast_without_size.published_ratio is None
        assert not contrast_without_size.published_bound
        assert contrast_without_size.published_direction == "smaller"


def test_threads_limit_how_many_downloads_run_at_a_time() -> None:
    # Python's own executor has min(32, cores + 4) threads.
    rungs = ("step_0", "plain_def", "step_1", "step_1_32", "step_2", "async", "ranged")
    at_a_time = [lanes(RUNGS[name], cores=2) for name in rungs]
    assert at_a_time == [1, 40, 6, 32, 100, None, 100]
    assert lanes(RUNGS["step_1"], cores=64) == 32


def test_a_link_that_all_share_sets_what_one_of_many_takes() -> None:
    for shared, is_set in (("unlimited", False), (39_296_264, True)):
        (alone,) = [
            contrast
            for contrast in plan(sets="clients", shared_bytes_per_s=shared).contrasts
            if contrast.name == "step_3 against one_client, mean"
        ]
        assert bool(alone.set_by_load) == is_set


def test_with_the_load_from_inside_the_lab_only_probes_and_no_service_is_shared() -> None:
    run_plan = plan(sets=["inside"], clients=7, timeout_s=9)
    for treatment in run_plan.treatments:
        from_inside = treatment.levels["load_from"] == "inside"
        assert from_inside == isinstance(treatment.workload.arrivals, OpenLoop)
        last = treatment.instruments[-1]
        assert from_inside == isinstance(last, OtherLoad), "it must be the first to end"
        if isinstance(last, OtherLoad):
            body = {"num_clients": 7, "model_id": "arnir0/Tiny-LLM", "duration_seconds": 9}
            assert last.body == body
            # Downloads of a blocked loop go on, one after the other, beyond their time-out.
            waits_s = 7 * 3.1 if treatment.levels["handler"] == "blocking" else 0
            assert last.longest_s > 9 + waits_s
    serving = settle({treatment.name: treatment.stack for treatment in run_plan.treatments}).serving
    assert len({nodes["registry"] for nodes in serving.values()}) == len(run_plan.treatments)
    assert len({nodes["store"] for nodes in serving.values()}) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sets": ["inside"], "timeout_s": 2.5}, "takes whole seconds"),
        ({"fresh_blocks": 2}, "the queue of another"),
    ],
)
def test_what_a_run_of_downloads_cannot_be_is_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        plan(**wrong)
