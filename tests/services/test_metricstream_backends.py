"""The metricstream server and the naive client that loads it, in both backends."""

from __future__ import annotations

import os

import pytest
from running import call, wait_until

from perflab.host.placing import placement
from perflab.stacks import cleanup
from perflab.stacks.process_backend import choose
from perflab.stacks.residents import Residents
from perflab.systems import ready_stacks

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_both_are_compiled_and_count_the_same_in_both_backends(backend_name: str) -> None:
    plan = ready_stacks()["naive_client"].plan()
    residents = Residents(choose(backend_name), {"it": plan}, placement(), f"naive-{os.getpid()}")
    residents.prepare()
    versions = residents.versions["metricstream"]
    assert versions["compiler"].startswith(("c++", "g++", "clang"))
    assert "-Werror" in versions["compiler flags"].split()
    residents.start()
    try:
        residents.activate("it")  # compares the settings in force with those that are wanted
        server = residents.instance("it", "metricstream").launch.port
        client = residents.instance("it", "naive_client").launch.port
        assert call(client, "POST", "/load").status == 200
        wait_until(
            lambda: call(client, "GET", "/results").body["status"] == "completed", timeout_s=60
        )
        results = call(client, "GET", "/results").body["results"]
        assert results["answered"] > 0
        stored = call(server, "GET", "/counts").body["samples_stored"]
        assert results["answered"] <= stored <= results["attempted"]
    finally:
        residents.stop()
    assert cleanup.everything() == []
