"""The experiment ``profile``: the watched functions, and the contrasts of sending and loops."""

from __future__ import annotations

import re
from functools import partial

import pytest

from perflab.instruments import Profiler
from perflab.recordings import Contrast
from perflab.systems.chat.experiments.profile import SEND, SERIALIZE
from perflab.trials.plan import RunPlan
from tests.systems.planned import plan_of

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
