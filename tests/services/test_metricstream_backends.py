"""The metricstream server and the naive client that loads it, in both backends."""

from __future__ import annotations

import pytest
from running import call, residing, wait_until

from perflab.systems import ready_stacks

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_both_are_compiled_and_count_the_same_in_both_backends(backend_name: str) -> None:
    plan = ready_stacks()["naive_client"].plan()
    with residing(backend_name, {"it": plan}) as residents:
        versions = residents.versions["metricstream"]
        assert versions["compiler"].startswith(("c++", "g++", "clang"))
        assert "-Werror" in versions["compiler flags"].split()
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
