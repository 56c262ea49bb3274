"""Every ready stack in containers: its images, its settings in force, and its own work."""

from __future__ import annotations

import pytest
from running import call

from perflab.systems import ready_stacks
from tests.stacks.asking import started, wait_until
from tests.systems.planned import plan_of

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(900)]
IN_CONTAINERS = pytest.mark.parametrize("backend_name", ["docker"], indirect=True, scope="module")


# Other tests put these up in containers.
ELSEWHERE = {"inference"}


@IN_CONTAINERS
@pytest.mark.parametrize("name", sorted({*ready_stacks()} - ELSEWHERE))
def test_a_stack_reports_the_settings_that_are_wanted(backend_name: str, name: str) -> None:
    with started(backend_name, {"it": ready_stacks()[name].plan()}) as residents:
        residents.activate("it")  # compares the settings in force with those that are wanted
        assert residents.lost("it") == {}


@IN_CONTAINERS
def test_both_compiled_services_count_the_same(backend_name: str) -> None:
    (it,) = plan_of("connection_lifecycle", sets=["naive"], rungs=["naive_closes_new"]).treatments
    with started(backend_name, {"it": it.stack}) as residents:
        versions = residents.versions["metricstream"]
        assert versions["compiler"].startswith(("c++", "g++", "clang"))
        assert "-Werror" in versions["compiler flags"].split()
        residents.activate("it")
        server = residents.instance("it", "metricstream").launch.port
        client = residents.instance("it", "naive_client").launch.port
        assert call(client, "POST", "/load").status == 200
        wait_until(
            lambda: call(client, "GET", "/results").body["status"] == "completed", timeout_s=60
        )
        results = call(client, "GET", "/results").body["results"]
        stored = call(server, "GET", "/counts").body["samples_stored"]
        assert 0 < results["answered"] <= stored <= results["attempted"]
