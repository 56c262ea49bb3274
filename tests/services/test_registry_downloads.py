"""Downloads from the registry: each byte and phase, what waits where, faults, and its own load."""

from __future__ import annotations

import http.client
import io
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from registering import (
    PATH,
    SIZE,
    VARIANTS,
    Registry,
    Tap,
    asking,
    download,
    refusal,
    serving,
    settings_for,
)
from running import Service, call, quiet_port, wait_until

from perflab.stacks.asking import status_of

pytestmark = pytest.mark.slow
# Once a model's first bytes have passed, nothing more does.
HELD = 100_000


@pytest.fixture
def tap(store: Service) -> Iterator[Tap]:
    made = Tap(store.port, HELD)
    yield made
    made.pass_all()
    made.close()


@pytest.mark.parametrize(("handler", "body"), VARIANTS)
def test_every_handler_gives_every_byte_and_tells_where_the_time_went(
    store: Service, handler: str, body: str
) -> None:
    with serving(settings_for(store, handler=handler, body=body)) as registry:
        status, headers, data = download(registry.port)
        registry.until(lambda now: now["completed"] == 1)
        counted = registry.counts()
    assert (status, len(data), headers["content-length"]) == (200, SIZE, str(SIZE))
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    assert counted["bytes_read"] == SIZE
    assert (counted["open"], counted["refused"]) == (0, {})
    assert counted["waiting_for_thread"] == counted["working_threads"] == 0
    timing = headers["server-timing"].split(", ")
    phases = {name: float(took) for name, took in (each.split(";dur=") for each in timing)}
    expected = {"metadata", "handler", "app"}
    expected |= {"first_byte"} if handler != "ranged" else set()
    expected |= {"get"} if body == "buffered" else set()
    expected |= {"thread"} if handler not in ("blocking", "async") else set()
    assert set(phases) == expected
    assert phases["app"] >= phases["handler"] >= phases["metadata"] > 0


def test_a_redirect_sends_the_client_to_the_store_past_the_service(store: Service) -> None:
    with serving(settings_for(store, handler="redirect")) as registry:
        status, headers, _ = download(registry.port)
        assert status == 307
        place = headers["location"].removeprefix(f"http://127.0.0.1:{store.port}")
        status, _, data = download(store.port, place)
        counted = registry.counts()
    assert (status, len(data)) == (200, SIZE)
    assert (counted["redirected"], counted["bytes_read"]) == (1, 0)


@pytest.mark.parametrize("handler", ["blocking", "threads", "to_thread", "async"])
def test_only_a_blocking_call_in_async_def_holds_up_the_event_loop(
    store: Service, tap: Tap, handler: str
) -> None:
    """A plain ``def``, of which the published study says the same, does not."""
    with serving(settings_for(store, tap, handler=handler)) as registry:
        with asking(registry.port):
            # Nothing else can be asked of it meanwhile, so the tap tells.
            wait_until(lambda: tap.open > 0, timeout_s=20)
            is_heard = (
                status_of(registry.port, "/health", 3 if handler == "blocking" else 15) == 200
            )
            tap.pass_all()
        assert is_heard == (handler != "blocking")


@pytest.mark.parametrize(
    ("handler", "threads", "clients"), [("to_thread", 3, 5), ("executor", 3, 5), ("threads", 0, 43)]
)
def test_who_has_no_thread_waits_and_is_counted(
    store: Service, tap: Tap, handler: str, threads: int, clients: int
) -> None:
    wanted: dict[str, Any] = {"handler": handler, "executor_threads": threads}
    with serving(settings_for(store, tap, **wanted)) as registry, ExitStack() as held:
        limit = threads or 40
        for _ in range(clients):
            held.enter_context(asking(registry.port))
        registry.until(lambda now: now["working_threads"] == limit)
        registry.until(lambda now: now["waiting_for_thread"] == clients - limit)
        assert registry.counts()["open"] == clients
        tap.pass_all()
        registry.until(lambda now: now["open"] == now["working_threads"] == 0)
        assert registry.counts()["most_waiting_for_thread"] >= clients - limit


def test_a_full_pool_opens_connections_beyond_it_and_discards_them(
    store: Service, tap: Tap
) -> None:
    """It does not let requests wait, as the published study has it."""
    wanted: dict[str, Any] = {"handler": "executor", "executor_threads": 8, "pool_connections": 2}
    with serving(settings_for(store, tap, **wanted)) as registry, ExitStack() as held:
        for _ in range(5):
            held.enter_context(asking(registry.port))
        wait_until(lambda: tap.open == 5, timeout_s=10)
        wait_until(lambda: connections(registry) == (5, 0), timeout_s=10)
        tap.pass_all()
        registry.until(lambda now: now["completed"] == 5)
        wait_until(lambda: connections(registry) == (5, 3), timeout_s=10)


def connections(registry: Registry) -> tuple[int, int]:
    """Return how many connections to the store were made, and thrown away."""
    counted = registry.counts()
    return counted["store_created"], counted["store_discarded"]


def test_a_reset_forgets_counts_and_wants_no_download_under_way(store: Service, tap: Tap) -> None:
    with serving(settings_for(store, tap, handler="executor")) as registry:
        with asking(registry.port):
            registry.until(lambda now: now["open"] == 1)
            assert call(registry.port, "POST", "/reset", {}).status == 409
            tap.pass_all()
            registry.until(lambda now: now["open"] == 0)
        assert registry.counts()["bytes_read"] == SIZE
        assert call(registry.port, "POST", "/reset", {}).status == 200
        assert registry.counts()["completed"] == registry.counts()["bytes_read"] == 0


@pytest.mark.parametrize("handler", ["threads", "async"])
@pytest.mark.parametrize("part", ["store_address", "database_address"])
def test_a_store_or_database_that_is_down_is_to_be_asked_again(
    store: Service, handler: str, part: str
) -> None:
    nowhere = {part: f"http://127.0.0.1:{quiet_port()}"}
    with serving(settings_for(store, handler=handler, **nowhere)) as registry:
        status, code, headers = refusal(registry.port)
        counted = registry.counts()
    assert (status, code) == (503, "store_down")
    assert int(headers["retry-after"]) > 0
    assert (counted["refused"], counted["open"]) == ({"store_down": 1}, 0)


@pytest.mark.parametrize(
    ("handler", "body"),
    [("threads", "buffered"), ("async", "buffered"), ("executor", "streamed")],
)
def test_a_model_cut_short_never_looks_whole(store: Service, handler: str, body: str) -> None:
    tap = Tap(store.port, allowed=600_000, is_cutting=True)
    with serving(settings_for(store, tap, handler=handler, body=body)) as registry:
        try:
            status, _, data = download(registry.port)
        except (http.client.IncompleteRead, ConnectionResetError):
            assert body == "streamed"
        else:
            assert status == 502
            assert b"store_broken" in data
        registry.until(lambda now: now["refused"] == {"store_broken": 1})
        registry.until(lambda now: now["open"] == now["working_threads"] == 0)
        assert registry.counts()["completed"] == 0
        tap.pass_all()
        assert len(download(registry.port)[2]) == SIZE, "the next one is whole"
    tap.close()


def test_an_object_of_another_length_than_its_metadata_says_is_refused(store: Service) -> None:
    with serving(settings_for(store, handler="threads")) as registry:
        objects = registry.app.state.store.objects
        key = "performance/perflab_small-001/main/model.zip"
        objects.put_object(Bucket="models", Key=key, Body=b"something else")
        assert refusal(registry.port, f"/{key}")[:2] == (502, "store_broken")
        objects.delete_object(Bucket="models", Key=key)
        assert refusal(registry.port, f"/{key}")[:2] == (404, "unknown_model")
        assert refusal(registry.port, PATH.replace("main", "v2"))[:2] == (404, "unknown_model")


WORKLOAD = "/health/performance/workload"
CLIENTS = 6


def workload(**changes: object) -> dict[str, object]:
    published = {"num_clients": CLIENTS, "model_id": "arnir0/Tiny-LLM", "duration_seconds": 20}
    return published | changes


def ended(registry: Registry, place: str) -> Any:
    """Wait for a workload; return its results."""
    wait_until(lambda: call(registry.port, "GET", place).body["status"] != "running", timeout_s=30)
    return call(registry.port, "GET", place).body["results"]


def test_what_is_not_done_by_the_end_is_timed_out_and_counts_in_latencies(
    store: Service, tap: Tap
) -> None:
    with serving(settings_for(store, tap, handler="executor")) as registry:
        place = call(registry.port, "POST", WORKLOAD, workload(duration_seconds=1)).body["results"]
        assert call(registry.port, "POST", WORKLOAD, workload()).status == 409, "one at a time"
        results = ended(registry, place)
        assert (results["successful"], results["timed_out"], results["bytes"]) == (0, CLIENTS, 0)
        assert results["mean_ms"] >= 950


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
