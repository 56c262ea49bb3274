"""The registry's health side: it downloads from itself, counts truly, and has a page for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import Tab
from registering import SIZE, Registry, Tap, serving, settings_for
from running import Service, call, wait_until

WORKLOAD = "/health/performance/workload"
CLIENTS = 6


@pytest.fixture
def registry(store: Service) -> Iterator[Registry]:
    with serving(settings_for(store, handler="executor")) as running:
        yield running


def workload(**changes: object) -> dict[str, object]:
    published = {"num_clients": CLIENTS, "model_id": "arnir0/Tiny-LLM", "duration_seconds": 20}
    return published | changes


def results(registry: Registry, **changes: object) -> Any:
    """Have a workload done; return its results."""
    begun = call(registry.port, "POST", WORKLOAD, workload(**changes))
    assert (begun.status, begun.body["status"]) == (202, "running")
    return ended(registry, begun.body["results"])


def ended(registry: Registry, place: str) -> Any:
    """Wait for a workload; return its results."""
    wait_until(lambda: call(registry.port, "GET", place).body["status"] != "running", timeout_s=30)
    return call(registry.port, "GET", place).body["results"]


@pytest.mark.slow
def test_the_service_downloads_from_itself_and_both_sides_count_the_same(
    registry: Registry,
) -> None:
    found = results(registry)
    assert found["successful"] == found["downloads"] == len(found["requests"]) == CLIENTS
    assert (found["bytes"], found["success_rate"]) == (CLIENTS * SIZE, 1)
    registry.until(lambda now: now["completed"] == CLIENTS)
    for each in found["requests"]:
        assert 0 <= each["start_ms"] <= each["first_byte_ms"] <= each["end_ms"]
        assert each["end_ms"] <= 1000 * found["total_duration_s"]
        assert (each["bytes"], each["status"], each["outcome"]) == (SIZE, 200, "done")
    rate = found["bytes"] / found["total_duration_s"]
    assert found["throughput_MiB_per_s"] == pytest.approx(rate / 2**20, rel=1e-3)
    assert found["min_ms"] <= found["median_ms"] <= found["p99_ms"] == found["max_ms"]


@pytest.mark.slow
def test_what_is_not_done_by_the_end_is_timed_out_and_counts_in_latencies(store: Service) -> None:
    tap = Tap(store.port, allowed=100_000)
    with serving(settings_for(store, tap, handler="executor")) as registry:
        place = call(registry.port, "POST", WORKLOAD, workload(duration_seconds=1)).body["results"]
        assert call(registry.port, "POST", WORKLOAD, workload()).status == 409, "one at a time"
        found = ended(registry, place)
        assert (found["successful"], found["timed_out"], found["bytes"]) == (0, CLIENTS, 0)
        assert found["min_ms"] >= 950
        tap.pass_all()
    tap.close()


@pytest.mark.slow
def test_a_download_that_is_refused_is_no_success_and_has_no_latency(registry: Registry) -> None:
    found = results(registry, model_id="nobody/has-this")
    assert (found["successful"], found["failed_otherwise"]) == (0, CLIENTS)
    assert {(each["outcome"], each["status"]) for each in found["requests"]} == {("refused", 404)}
    assert found["mean_ms"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"num_clients": 501}, {"duration_seconds": 0}, {"model_id": "../x"}],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused_by_its_name(
    registry: Registry, changes: dict[str, object]
) -> None:
    refused = call(registry.port, "POST", WORKLOAD, workload(**changes))
    assert refused.status == 422
    assert next(iter(changes)) in str(refused.body)
    assert call(registry.port, "GET", f"{WORKLOAD[:-8]}results/nobody").status == 404


@pytest.mark.browser
def test_the_page_leads_from_its_button_to_the_measures(browser: Any, registry: Registry) -> None:
    page = Tab(browser, f"http://127.0.0.1:{registry.port}/health/page")
    page.part("clients").clear()
    page.part("clients").send_keys(str(CLIENTS))
    page.part("start").click()
    page.wait(lambda: page.text("state").startswith("completed"))
    page.wait(lambda: f"successful {CLIENTS}" in page.text("figures"))
    assert page.complaints() == []
    page.close()
