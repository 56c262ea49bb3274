"""The naive client beside the server that it loads, in both backends, as a stack starts them."""

from __future__ import annotations

import os

import pytest
from naive_loading import METRICS, run
from running import call

from perflab.host.placing import placement
from perflab.stacks import leftovers
from perflab.stacks.choice import choose
from perflab.stacks.residents import Residents
from perflab.systems import ready_stacks

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_it_loads_the_service_that_it_is_wired_to_in_both_backends(backend_name: str) -> None:
    plan = ready_stacks()["naive_client"].plan()
    residents = Residents(choose(backend_name), {"it": plan}, placement(), f"naive-{os.getpid()}")
    residents.prepare()
    residents.start()
    try:
        residents.activate("it")  # compares the settings in force with those that are wanted
        server = residents.instance("it", "metricstream").launch.port
        client = residents.instance("it", "naive_client").launch.port
        # The target is known to the client from its stack.
        results = run(client, path="/metrics", body=METRICS, clients=4, rate=40, duration_s=0.3)
        assert results["answered"] == results["attempted"] >= 4
        assert call(server, "GET", "/counts").body["samples_stored"] == results["answered"]
    finally:
        residents.stop()
    assert leftovers.everything() == []
