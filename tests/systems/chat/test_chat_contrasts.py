"""The claims of the ladder: each is tested in its own direction, at its own settings."""

from __future__ import annotations

import pytest

from perflab.recordings import Contrast
from perflab.systems import experiment
from perflab.systems.chat.changes import CHANGES
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
    for changes in ({"action_s": 3.0}, {"subscriber_share": 1.0}):
        assert contrasts(**changes)[name].published_ratio is None


def test_only_rungs_at_the_published_load_stand_for_rows_of_the_study() -> None:
    chosen = experiment("chat_ladder")
    names = ["json", "json_login"]
    for changes in ({}, {"actions": 40}, {"preset": "published", "actions": 39}):
        parameters = chosen.check({"rungs": names, **changes})
        assert all("scenario" not in each.levels for each in chosen.treatments(parameters))
    names = ["json_251", "json_login"]
    found = chosen.treatments(chosen.check({"rungs": names, "preset": "published"}))
    assert [each.levels["scenario"] for each in found] == ["", "JSON, with login"]


def test_the_preset_has_all_rows_of_the_study_at_its_load() -> None:
    chosen = experiment("chat_ladder")
    plan = chosen.plan(chosen.check({"preset": "published"}))
    assert {each.levels["scenario"] for each in plan.treatments} == set(SCENARIOS.values())
    asked = {each.workload.arrivals.parameters["pings"] for each in plan.treatments}
    assert asked == {"closed"}
    codes = {each.code for each in plan.warnings}
    # It takes hours, and is not to end without a single effect that could be shown.
    assert "chat.length" in codes
    assert not codes & {"chat.load", "plan.blocks"}


def test_every_published_row_has_its_size_in_pings_at_the_published_load() -> None:
    sized = [each for each in contrasts(preset="published", rungs=list(SCENARIOS)).values()
             if each.published_ratio and each.response == "all_ping_p90_ms"]  # fmt: skip
    compared = {side["rung"] for each in sized for side in (each.numerator, each.denominator)}
    assert compared == set(SCENARIOS)
    named = {each.name: each.published_ratio for each in sized}
    assert named["uvloop against protobuf, p90 of pings"] == pytest.approx(165 / 159)


@pytest.mark.parametrize(
    "changes",
    [{"preset": "quick"}, {"actions": 39}, {"join_s": 0.3}, {"bcrypt_rounds": 10}],
)
def test_pings_have_a_published_size_at_the_published_load_only(changes: dict[str, object]) -> None:
    words = {"preset": "published", "rungs": ["json", "orjson"], **changes}
    assert not [name for name in contrasts(**words) if "of pings" in name]
    chosen = experiment("chat_ladder")
    codes = {each.code for each in chosen.plan(chosen.check(words)).warnings}
    assert "chat.load" in codes


def test_what_kept_logins_out_of_the_earlier_rows_is_said_to_be_unknown() -> None:
    found = contrasts(preset="published", rungs=["uvloop", "no_deflate"])
    claims = [each.claim for each in found.values() if "of pings" in each.name]
    assert len(claims) == 3
    assert all("how logins are kept out of uvloop" in claim for claim in claims)


def test_a_percentile_that_too_few_pings_are_for_is_not_compared() -> None:
    found = contrasts(preset="published", rungs=list(SCENARIOS))
    few = found["no_deflate_425 against no_deflate, p99 of pings"]
    assert few.not_testable.startswith("a p99 needs 368 pings; at one a second the shorter")
    assert not found["no_deflate_425 against no_deflate_300, p99 of pings"].not_testable
    assert not found["no_deflate_425 against no_deflate, p95 of pings"].not_testable


def test_two_rungs_of_no_step_are_compared_and_nothing_else_is_refused() -> None:
    found = contrasts(rungs=["json_25", "best_25"])
    assert list(found) == [f"best_25 against json_25, p{share}" for share in PERCENTILES]
    for each in found.values():
        assert (each.source, each.published_direction, each.not_testable) == ("none", None, "")
        assert (each.numerator, each.denominator) == ({"rung": "best_25"}, {"rung": "json_25"})


def test_rungs_of_other_numbers_of_users_are_not_compared() -> None:
    assert contrasts(rungs=["json", "best_800"]) == {}


def test_a_step_that_this_machine_cannot_test_is_refused_where_the_rung_before_it_runs() -> None:
    refusals = {"bound_425": "one core"}
    for names, refused in ((["json", "no_deflate_425"], 3), (["json", "orjson"], 0)):
        have = {name: RUNGS[name] for name in names}
        found = steps_of(have, refusals)
        assert sum(bool(each.not_testable) for each in found) == refused
