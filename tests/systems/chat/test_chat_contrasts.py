"""The contrasts of the ladder and of the experiment ``profile``, with what it watches."""

from __future__ import annotations

import re
from functools import partial

import pytest

from perflab.instruments import Profiler
from perflab.recordings import Contrast
from perflab.systems import experiment
from perflab.systems.chat.experiments.profile import SEND, SERIALIZE
from perflab.systems.chat.rungs import PERCENTILES, RUNGS, SCENARIOS
from perflab.systems.chat.rungs import contrasts as steps_of
from perflab.trials.plan import RunPlan
from tests.systems.planned import plan_of


def contrasts(**changes: object) -> dict[str, Contrast]:
    plan = plan_of("chat_ladder", **changes)
    return {contrast.name: contrast for contrast in plan.contrasts}


def test_only_rungs_at_the_published_load_repeat_rows_of_the_study() -> None:
    chosen = experiment("chat_ladder")
    quick = chosen.treatments(chosen.check({"rungs": ["json", "json_login"], "actions": 40}))
    assert not [item for item in quick if "scenario" in item.levels]
    names = ["json_251", "json_login"]
    treatments = chosen.treatments(chosen.check({"rungs": names, "preset": "published"}))
    assert [item.levels["scenario"] for item in treatments] == ["", "JSON, with login"]


def test_the_preset_has_all_rows_of_the_study_at_its_load() -> None:
    plan = plan_of("chat_ladder", preset="published")
    assert {treatment.levels["scenario"] for treatment in plan.treatments} == set(
        SCENARIOS.values()
    )
    pings = {treatment.workload.arrivals.parameters["pings"] for treatment in plan.treatments}
    assert pings == {"closed"}
    codes = {warning.code for warning in plan.warnings}
    assert not codes & {"chat.load", "plan.blocks"}


def test_pings_have_a_published_size_at_the_published_load_only() -> None:
    parameters = {"preset": "published", "rungs": ["json", "orjson"], "actions": 39}
    assert not [name for name in contrasts(**parameters) if "of pings" in name]
    codes = {warning.code for warning in plan_of("chat_ladder", **parameters).warnings}
    assert "chat.load" in codes


def test_two_rungs_of_no_step_are_compared_and_nothing_else_is_refused() -> None:
    by_name = contrasts(rungs=["json_25", "best_25"])
    assert list(by_name) == [f"best_25 against json_25, p{share}" for share in PERCENTILES]
    for contrast in by_name.values():
        assert (contrast.source, contrast.published_direction) == ("none", None)
        assert not contrast.not_testable
    assert contrasts(rungs=["json", "best_800"]) == {}


def test_a_step_that_this_machine_cannot_test_is_refused_where_the_rung_before_it_runs() -> None:
    refusals = {"bound_425": "one core"}
    for names, refused in ((["json", "no_deflate_425"], 3), (["json", "orjson"], 0)):
        rungs = {name: RUNGS[name] for name in names}
        steps = steps_of(rungs, refusals)
        assert sum(bool(step.not_testable) for step in steps) == refused


profile_plan = partial(plan_of, "profile", codec=["json"])


def of_response(planned: RunPlan, response: str) -> list[Contrast]:
    return [contrast for contrast in planned.contrasts if contrast.response == response]


def test_sending_without_compression_is_compared_with_sending_with_it() -> None:
    planned = profile_plan(deflate=["on", "off"], profiler=["on"])
    watched = [set(item.watch) for treatment in planned.treatments for item in treatment.instruments
               if isinstance(item, Profiler)]  # fmt: skip
    assert watched == [{"send", "serialize", "deflate"}, {"send", "serialize"}]
    (claim,) = of_response(planned, "profile_send_us_per_message")
    assert claim.numerator == {"rung": "json_profiled"}
    assert claim.denominator == {"rung": "json_deflate_profiled"}
    # The published seconds are of another profiler, codec and load.
    assert claim.published_ratio is None


@pytest.mark.parametrize(
    ("pattern", "frame", "matches"),
    [
        (SEND, "Connection.write (chat/hub.py)", True),
        (SEND, "_SelectorSocketTransport._write_ready (asyncio/selector_events.py)", True),
        (SEND, "WebSocketProtocol.asgi_send (protocols/websockets/websockets_impl.py)", True),
        (SEND, "Frame.write (websockets/legacy/framing.py)", True),
        (SEND, "PerMessageDeflate.encode (websockets/extensions/permessage_deflate.py)", True),
        (SEND, "WebSocket.send (starlette/websockets.py)", False),
        (SERIALIZE, "Hub._deliver (chat/hub.py)", True),
        (SERIALIZE, "Coder.encode (chat/codecs.py)", True),
        (SERIALIZE, "Coder.decode (chat/codecs.py)", False),
    ],
)
def test_patterns_match_the_watched_frames_only(pattern: str, frame: str, matches: bool) -> None:
    assert bool(re.search(pattern, frame)) is matches


def test_both_event_loops_are_compared_without_the_profiler() -> None:
    planned = profile_plan(loop=["asyncio", "uvloop"])
    assert {item.levels["rung"]: item.levels["loop"] for item in planned.treatments} == {
        "json": "asyncio", "json_profiled": "asyncio",
        "json_uvloop": "uvloop", "json_uvloop_profiled": "uvloop",
    }  # fmt: skip
    (loops,) = of_response(planned, "cpu_us_per_message")
    assert (loops.numerator, loops.denominator) == ({"rung": "json_uvloop"}, {"rung": "json"})
    assert of_response(profile_plan(), "cpu_us_per_message") == []
