"""The claims of the ladder: each is tested in its own direction, at its own settings."""

from __future__ import annotations

import pytest

from perflab.recordings import Contrast
from perflab.systems import experiment
from perflab.systems.chat.changes import CHANGES, direction, published_ratio
from perflab.systems.chat.changes import contrasts as steps_of
from perflab.systems.chat.rungs import PERCENTILES, RUNGS, SCENARIOS, rung_named

EVERY_RUNG = {"rungs": list(RUNGS)}


def contrasts(**changes: object) -> dict[str, Contrast]:
    chosen = experiment("chat_ladder")
    plan = chosen.plan(chosen.check({**EVERY_RUNG, **changes}))
    return {each.name: each for each in plan.contrasts}


def test_every_step_is_between_rungs_that_exist_and_differ() -> None:
    for change in CHANGES:
        assert rung_named(change.after) != rung_named(change.before)
        assert bool(change.claim) == (change.claimed is not None)


def test_a_size_that_contradicts_its_claim_is_not_the_measure_of_it() -> None:
    found = contrasts()
    beats = found["protobuf against orjson, p99"]
    assert (beats.published_ratio, beats.published_direction) == (None, "smaller")
    assert "own figures say 1.05" in beats.claim
    agrees = found["protobuf against orjson, p90"]
    assert agrees.published_ratio == pytest.approx(159 / 170)
    for each in found.values():
        if each.published_ratio is not None:
            assert each.published_direction == direction(each.published_ratio)


def test_published_sizes_are_compared_at_the_published_load_only() -> None:
    assert any(each.published_ratio for each in contrasts().values())
    for changes in ({"users_share": 0.5}, {"action_s": 3.0}, {"subscriber_share": 1.0}):
        latencies = [each for each in contrasts(**changes).values() if "delivery" in each.response]
        assert latencies
        assert all(each.published_ratio is None for each in latencies)
    small = experiment("chat_ladder").check({"users_share": 0.5})
    assert all(
        "scenario" not in each.levels for each in experiment("chat_ladder").treatments(small)
    )


def test_published_rungs_serialize_for_every_receiver_as_the_study_did() -> None:
    assert {RUNGS[name].serialize for name in SCENARIOS} == {"per_send"}
    assert RUNGS["once"] == RUNGS["json"].model_copy(update={"serialize": "per_message"})


def test_each_pair_of_published_rows_that_a_step_joins_has_its_size() -> None:
    sized = [change for change in CHANGES if published_ratio(change, 90)]
    assert {change.after for change in sized} >= set(SCENARIOS) - {"json", "uvloop_200"}
    assert all(published_ratio(change, share) for change in sized for share in PERCENTILES)


def test_two_rungs_of_no_step_are_compared_and_nothing_else_is_refused() -> None:
    found = contrasts(rungs=["json", "best"], users_share=0.1)
    assert list(found) == [f"best against json, p{share}" for share in PERCENTILES]
    for each in found.values():
        assert (each.source, each.published_direction, each.not_testable) == ("none", None, "")
        assert (each.numerator, each.denominator) == ({"rung": "best"}, {"rung": "json"})


def test_rungs_of_other_numbers_of_users_are_not_compared() -> None:
    assert contrasts(rungs=["json", "best_800"]) == {}
    found = contrasts(rungs=["json"], users=[800])
    assert list(found) == [f"best_800 against no_deflate_800, p{share}" for share in PERCENTILES]


def test_a_step_that_this_machine_cannot_test_is_refused_where_the_rung_before_it_runs() -> None:
    refusals = {"bound_425": "one core"}
    for names, refused in ((["json", "no_deflate_425"], 3), (["json", "orjson"], 0)):
        have = {name: RUNGS[name] for name in names}
        found = steps_of(have, refusals, as_published=True)
        assert sum(bool(each.not_testable) for each in found) == refused
