"""The metricstream server in both backends, as an experiment starts it."""

from __future__ import annotations

import os

import pytest
from running import call, wait_until
from speaking import batch, post, speaking

from perflab.host.placing import placement
from perflab.stacks import leftovers
from perflab.stacks.choice import choose
from perflab.stacks.residents import Residents
from perflab.systems import ready_stacks

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_it_is_compiled_and_serves_in_both_backends(backend_name: str) -> None:
    plan = ready_stacks()["metricstream"].plan()
    residents = Residents(choose(backend_name), {"it": plan}, placement(), f"metric-{os.getpid()}")
    residents.prepare()
    versions = residents.versions["metricstream"]
    assert versions["compiler"].startswith(("c++", "g++", "clang"))
    assert "-Werror" in versions["compiler flags"].split()
    assert "python" not in versions
    residents.start()
    try:
        residents.activate("it")  # compares the settings in force with those that are wanted
        port = residents.instance("it", "metricstream").launch.port
        with speaking(port, post(batch("a", 1, 2))) as speaker:
            assert speaker.reply().body == {"accepted": 2}
        wait_until(lambda: call(port, "GET", "/counts").body["samples_stored"] == 2, timeout_s=10)
    finally:
        residents.stop()
    assert leftovers.everything() == []
