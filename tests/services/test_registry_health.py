"""The registry's health side: it downloads from itself, counts truly, and has a page for that."""

from __future__ import annotations

from typing import Any

import pytest
from registering import Registry, Tap, serving, settings_for
from running import Service, call, wait_until

pytestmark = pytest.mark.slow
WORKLOAD = "/health/performance/workload"
CLIENTS = 6


def workload(**changes: object) -> dict[str, object]:
    published = {"num_clients": CLIENTS, "model_id": "arnir0/Tiny-LLM", "duration_seconds": 20}
    return published | changes


def ended(registry: Registry, place: str) -> Any:
    """Wait for a workload; return its results."""
    wait_until(lambda: call(registry.port, "GET", place).body["status"] != "running", timeout_s=30)
    return call(registry.port, "GET", place).body["results"]


def test_what_is_not_done_by_the_end_is_timed_out_and_counts_in_latencies(store: Service) -> None:
    tap = Tap(store.port, allowed=100_000)
    with serving(settings_for(store, tap, handler="executor")) as registry:
        place = call(registry.port, "POST", WORKLOAD, workload(duration_seconds=1)).body["results"]
        assert call(registry.port, "POST", WORKLOAD, workload()).status == 409, "one at a time"
        results = ended(registry, place)
        assert (results["successful"], results["timed_out"], results["bytes"]) == (0, CLIENTS, 0)
        assert results["mean_ms"] >= 950
        tap.pass_all()
    tap.close()


def test_a_download_that_is_refused_is_no_success_and_has_no_latency(store: Service) -> None:
    with serving(settings_for(store, handler="executor")) as registry:
        begun = call(registry.port, "POST", WORKLOAD, workload(model_id="nobody/has-this"))
        assert (begun.status, begun.body["status"]) == (202, "running")
        results = ended(registry, begun.body["results"])
    assert (results["successful"], results["failed_otherwise"]) == (0, CLIENTS)
    assert {(request["outcome"], request["status"]) for request in results["requests"]} == {
        ("refused", 404)
    }
    assert results["mean_ms"] is None
