"""Faults around the registry: each is named, no short body looks whole, and nothing is left."""

from __future__ import annotations

import http.client
import logging
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from registering import (
    HANDLERS,
    MODELS,
    PATH,
    SIZE,
    VARIANTS,
    Registry,
    Tap,
    asking,
    download,
    health_within,
    populate,
    refusal,
    serving,
    settings_for,
)
from registry.settings import Settings, from_environment
from registry.store.credentials import store_endpoint
from running import SECRET, Service, Start, call, quiet_port, wait_until

pytestmark = pytest.mark.slow
HELD = 600_000
SLOW_S = 0.5
# What blocks the event loop notices nothing while it waits for the store.
NOTICING = [(handler, body) for handler, body in VARIANTS if handler != "blocking"]


@pytest.fixture(scope="module")
def store(started: Start) -> Service:
    made = started("objectstore", store="moto")
    assert populate(made) == MODELS
    return made


@pytest.fixture
def tap(store: Service) -> Iterator[Tap]:
    made = Tap(store.port)
    yield made
    made.close()


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_store_that_is_down_is_to_be_asked_again(store: Service, handler: str) -> None:
    nowhere = f"http://127.0.0.1:{quiet_port()}"
    settings = settings_for(store, handler=handler, store_address=nowhere)
    with serving(settings) as registry:
        status, code, headers = refusal(registry.port)
        counted = registry.counts()
    assert (status, code) == (503, "store_down")
    assert int(headers["retry-after"]) > 0
    assert (counted["refused"], counted["in_flight"]) == ({"store_down": 1}, 0)


@pytest.mark.parametrize("handler", ["threads", "async", "redirect"])
def test_so_is_a_database_that_is_down(store: Service, handler: str) -> None:
    nowhere = f"http://127.0.0.1:{quiet_port()}"
    with serving(settings_for(store, handler=handler, database_address=nowhere)) as registry:
        status, code, headers = refusal(registry.port)
    assert (status, code, "retry-after" in headers) == (503, "store_down", True)


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_store_that_falls_silent_is_given_up(store: Service, tap: Tap, handler: str) -> None:
    tap.hold_after(HELD // 4)
    settings = settings_for(store, tap, handler=handler, read_timeout_s=0.5)
    with serving(settings) as registry:
        status, code, _ = refusal(registry.port)
        registry.until(lambda now: now["store_connections"]["open"] == 0)
    assert (status, code) in [(503, "store_down"), (502, "store_broken")]


@pytest.mark.parametrize(
    ("handler", "body"), [("executor", "buffered"), ("threads", "streamed"), ("async", "streamed")]
)
def test_a_store_that_is_slow_is_waited_for_and_the_model_is_whole(
    store: Service, tap: Tap, handler: str, body: str
) -> None:
    with serving(settings_for(store, tap, handler=handler, body=body)) as registry:
        tap.hold_after(HELD // 4)
        with ThreadPoolExecutor(1) as client:
            waiting = client.submit(download, registry.port)
            wait_until(lambda: tap.open > 0, timeout_s=20)
            registry.until(lambda now: now["in_flight"] == 1)
            time.sleep(SLOW_S)
            assert health_within(registry.port, 10), "others are served meanwhile"
            assert not waiting.done()
            tap.pass_all()
            status, _, data = waiting.result(timeout=30)
        assert (status, len(data)) == (200, SIZE)
        registry.until(lambda now: now["in_flight"] == 0)
        assert registry.counts()["refused"] == {}


@pytest.mark.parametrize(("handler", "body"), VARIANTS)
def test_a_model_cut_short_never_looks_whole(
    store: Service, tap: Tap, handler: str, body: str
) -> None:
    with serving(settings_for(store, tap, handler=handler, body=body)) as registry:
        tap.cut_after(HELD)
        try:
            status, _, data = download(registry.port)
        except (http.client.IncompleteRead, ConnectionResetError):
            assert body == "streamed"
        else:
            assert status == 502
            assert b"store_broken" in data
        registry.until(lambda now: now["refused"] == {"store_broken": 1})
        counted = registry.counts()
        assert (counted["completed"], counted["in_flight"]) == (0, 0)
        tap.pass_all()
        assert len(download(registry.port)[2]) == SIZE, "the next one is whole"


def test_an_object_of_another_length_than_its_metadata_says_is_refused(store: Service) -> None:
    with serving(settings_for(store, handler="threads")) as registry:
        objects = registry.app.state.store.objects
        key = "performance/perflab_small-001/main/model.zip"
        kept = objects.get_object(Bucket="models", Key=key)["Body"].read()
        objects.put_object(Bucket="models", Key=key, Body=kept[:-1])
        try:
            assert refusal(registry.port, f"/{key}")[:2] == (502, "store_broken")
        finally:
            objects.put_object(Bucket="models", Key=key, Body=kept)
        assert download(registry.port, f"/{key}")[2] == kept


@pytest.mark.parametrize("handler", ["threads", "async"])
def test_wrong_credentials_are_told_without_being_shown(
    store: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture, handler: str
) -> None:
    wrong = tmp_path / "secret"
    wrong.write_text("not-the-password-at-all")
    caplog.set_level(logging.DEBUG, "registry")
    with serving(settings_for(store, handler=handler, secret_file=wrong)) as registry:
        status, _, body = download(registry.port)
        shown = str(call(registry.port, "GET", "/settings").body)
    assert (status, b"store_broken" in body) == (502, True)
    for text in (body.decode(), shown, caplog.text):
        assert "not-the-password" not in text
        assert SECRET not in text
        assert "Signature=" not in text
    assert "403" in caplog.text


def test_a_store_of_the_users_own_wants_credentials_and_tells_nobody(tmp_path: Path) -> None:
    own = Settings(store_url="https://s3.example.org")
    with pytest.raises(ValueError, match="AWS_SECRET_ACCESS_KEY"):
        store_endpoint(own, {})
    given = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "my-secret"}
    endpoint = store_endpoint(own, given)
    assert endpoint.client_options()["aws_secret_access_key"] == "my-secret"
    assert "my-secret" not in repr(endpoint) + repr(own)
    in_file = tmp_path / "credentials"
    in_file.write_text('{"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "filed"}')
    assert store_endpoint(replace(own, credentials_file=in_file), {}).secret == "filed"
    with pytest.raises(ValueError, match="holds a name or password") as refused:
        from_environment({"REGISTRY_STORE_URL": "https://me:my-secret@s3.example.org"})
    assert "my-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EXECUTOR_THREADS", "-1"),
        ("EXECUTOR_THREADS", "1001"),
        ("POOL_CONNECTIONS", "0"),
        ("POOL_CONNECTIONS", "9" * 5000),
        ("RETRY_ATTEMPTS", "1.5"),
        ("READ_TIMEOUT_S", "nan"),
        ("HANDLER", "magic"),
        ("STORE_URL", "file:///etc/passwd"),
    ],
    ids=lambda text: text[:20],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"REGISTRY_{name}"):
        from_environment({f"REGISTRY_{name}": value})


@pytest.mark.parametrize("says_close", [False, True], ids=["kept", "closing"])
@pytest.mark.parametrize(("handler", "body"), NOTICING)
def test_when_the_client_goes_the_store_is_read_no_more(
    store: Service, tap: Tap, handler: str, body: str, says_close: bool
) -> None:
    """Promised within a second; this machine may be three times as slow."""
    tap.says_close = says_close
    with serving(settings_for(store, tap, handler=handler, body=body)) as registry:
        tap.hold_after(HELD // 4)
        with asking(registry.port):
            wait_until(lambda: tap.open > 0, timeout_s=20)
            registry.until(lambda now: now["in_flight"] == 1)
        wait_until(lambda: tap.open == 0, timeout_s=3)
        registry.until(lambda now: now["in_flight"] == now["working_threads"] == 0)
        counted = registry.counts()
        assert (counted["aborted"], counted["refused"]) == (1, {})
        assert counted["store_connections"]["open"] == 0
        tap.pass_all()
        assert len(download(registry.port)[2]) == SIZE


def test_a_client_that_goes_takes_no_other_ones_connection_along(store: Service, tap: Tap) -> None:
    """A connection that went back to the pool is the next one's."""
    before = Tap(store.port)
    address = f"http://127.0.0.1:{before.port}"
    settings = settings_for(store, tap, handler="executor", database_address=address)
    with serving(settings) as registry:
        tap.hold_after(HELD // 4)
        with ExitStack() as first:
            first.enter_context(asking(registry.port))
            registry.until(lambda now: now["store_connections"]["open"] == 1)
            before.hold_after(0)
            with asking(registry.port) as second:
                registry.until(lambda now: now["database_connections"]["requests"] == 2)
                assert registry.counts()["database_connections"]["created"] == 1
                first.close()
                registry.until(lambda now: now["aborted"] == 1)
                before.pass_all()
                tap.pass_all()
                assert second.recv(12) == b"HTTP/1.1 200"
    before.close()


def abort(port: int, after: int = 0) -> None:
    """Ask for a model, read a little, and go without a word."""
    with asking(port) as client:
        if after:
            client.recv(after)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize(
    ("handler", "body", "clients"),
    [("executor", "streamed", 1000), ("threads", "buffered", 200), ("async", "streamed", 200)],
)
def test_a_thousand_aborted_downloads_leave_nothing(
    store: Service, started: Start, handler: str, body: str, clients: int
) -> None:
    at = {"store": store.port, "database": store.port}
    service = started("registry", at, handler=handler, body=body, executor_threads=8)
    registry: Any = Registry(service.port, None, None)
    abort_many(service.port, 100)
    registry.until(lambda now: now["in_flight"] == now["working_threads"] == 0)
    before = registry.counts()
    abort_many(service.port, clients)
    registry.until(lambda now: now["in_flight"] == now["working_threads"] == 0)
    registry.until(lambda now: now["files"] <= before["files"] + 12)
    after = registry.counts()
    assert after["aborted"] + after["completed"] >= clients
    assert after["threads"] <= max(before["threads"], 42)
    assert after["store_connections"]["open"] <= 10, "as many as the pool keeps"
    assert after["framework_waiting"] == after["waiting_for_thread"] == 0
    # One model is 2.5 MB: two hundred of them would be 500 MB.
    assert after["rss_bytes"] < before["rss_bytes"] + 100_000_000
    assert len(download(service.port, PATH)[2]) == SIZE


def abort_many(port: int, clients: int) -> None:
    def go(number: int) -> None:
        for each in range(number, clients, 10):
            abort(port, after=1000 * (each % 2))

    threads = [threading.Thread(target=go, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
