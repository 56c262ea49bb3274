"""The claims of the ladder: each is tested in its own direction, at its own settings."""

from __future__ import annotations

import pytest

from perflab.recordings import Contrast
from perflab.systems import experiment
from perflab.systems.chat.changes import CHANGES, published_ratio
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


def test_deliveries_are_compared_in_direction_only_for_published_sizes_are_of_pings() -> None:
    for changes in ({}, {"actions": 40}):
        latencies = [each for each in contrasts(**changes).values() if "delivery" in each.response]
        assert latencies
        assert all(each.published_ratio is None for each in latencies)


def test_a_claim_that_its_own_figures_contradict_says_so() -> None:
    found = contrasts()
    assert "own figures of pings say 1.05" in found["protobuf against orjson, p99"].claim
    assert "own figures" not in found["protobuf against orjson, p90"].claim


def test_the_volume_has_a_published_size_at_the_published_load_only() -> None:
    name = "volume at 425 users against 250"
    assert contrasts()[name].published_ratio == pytest.approx(2.89)
    for changes in ({"users_share": 0.5}, {"action_s": 3.0}, {"subscriber_share": 1.0}):
        assert contrasts(**changes)[name].published_ratio is None


def test_only_rungs_at_the_published_load_stand_for_rows_of_the_study() -> None:
    chosen = experiment("chat_ladder")
    names = ["json", "json_login"]
    for changes in ({}, {"actions": 40, "users_share": 0.5}):
        parameters = chosen.check({"rungs": names, **changes})
        assert all("scenario" not in each.levels for each in chosen.treatments(parameters))
    # The first delay of the rows without logins is not published.
    found = chosen.treatments(chosen.check({"rungs": names, "actions": 40}))
    assert [each.levels["scenario"] for each in found] == ["", "JSON, with login"]


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
        found = steps_of(have, refusals)
        assert sum(bool(each.not_testable) for each in found) == refused
