"""Faults around the registry: each is named, and no short body looks whole."""

from __future__ import annotations

import http.client

import pytest
from registering import PATH, SIZE, Tap, download, refusal, serving, settings_for
from running import Service, quiet_port

pytestmark = pytest.mark.slow


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
