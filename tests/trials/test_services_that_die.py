"""A service that dies under load: the run goes on, and what was measured until then is kept."""

from __future__ import annotations

import math
import os
import signal
import time

import pytest

from perflab.paths import runs_dir
from perflab.recordings import Run
from perflab.stacks import leftovers
from perflab.systems import experiment
from perflab.trials.client import conduct
from perflab.trials.conductor import Order
from perflab.trials.events import Event, LoadProgress

# Users have joined after half a second and all act from the second on.
CROWD = {
    "rungs": ["no_deflate"], "users_share": 0.08, "blocks": 2, "join_s": 0.02, "action_s": 0.5,
    "plateau_s": 3.0, "bcrypt_rounds": 4, "seed": 5,
}  # fmt: skip
ON_THE_PLATEAU_S = 2.5


@pytest.mark.slow
def test_deliveries_until_a_service_was_killed_are_in_the_recording_and_the_run_goes_on() -> None:
    chosen = experiment("chat_ladder")
    plan = chosen.plan(chosen.check(CROWD))
    killed_ns = 0

    def show(event: Event) -> None:
        nonlocal killed_ns
        under_way = isinstance(event, LoadProgress) and event.seconds > ON_THE_PLATEAU_S
        if under_way and not killed_ns:
            killed_ns = time.monotonic_ns()
            kill_chat()

    run = Run(conduct(Order(plan=plan, backend="process", runs=runs_dir()), show))
    assert run.record.state == "finished"
    failed, after = run.trials().to_dict("records")
    assert (failed["state"], failed["reasons"][0].code) == ("failed", "service.failed")
    assert [each.side for each in failed["reasons"]] == ["server"]
    assert "service 'chat" in failed["reasons"][0]
    assert "log lines" in failed["reasons"][0]

    messages = run.messages([failed["trial_id"]])
    heard = messages[messages["kind"] == "delivery"]
    assert len(heard) > 200
    assert killed_ns - 1_000_000_000 < heard["at_ns"].max() < killed_ns + 500_000_000
    assert (messages["kind"] == "cut").sum() == 21
    assert len(run.requests(stage=None, trial_ids=[failed["trial_id"]])) >= 21
    assert set(run.samples([failed["trial_id"]])["service"]) >= {"chat", "client"}

    # Nothing of it is a number, and the next trial is whole.
    assert math.isnan(failed["messages_per_s"])
    assert after["state"] in ("valid", "invalid")
    assert after["messages_delivered"] > 1.2 * len(heard)
    assert leftovers.everything() == []


def kill_chat() -> None:
    (chat,) = [item for item in leftovers.everything() if item.service.startswith("chat")]
    os.kill(int(chat.identity), signal.SIGKILL)
