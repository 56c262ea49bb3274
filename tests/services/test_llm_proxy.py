"""The proxy as a service: what it passes on to any client, what it says of faults, what stays."""

from __future__ import annotations

import contextlib
import http.client
import resource
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from asking_models import (
    MODES,
    TOOL,
    BrokenServer,
    ask,
    ask_over,
    asking,
    broken_model,
    question,
)
from running import (
    Service,
    Start,
    call,
    counts,
    quiet_port,
    until,
    wait_until,
)

pytestmark = pytest.mark.slow
SILENCE_S = 2.0


@pytest.fixture(scope="module")
def model(started: Start) -> Service:
    """As fast as it is read."""
    return started("llm_upstream", tokens=6, token_rate=0, first_token_ms=0)


@pytest.fixture(scope="module")
def proxies(started: Start, model: Service) -> dict[str, Service]:
    return {mode: started("llm_proxy", {"upstream": model.port}, mode=mode) for mode in MODES}


@pytest.fixture(params=MODES)
def proxy(request: pytest.FixtureRequest, proxies: dict[str, Service]) -> Service:
    return proxies[request.param]


@pytest.fixture(scope="module")
def broken() -> Iterator[BrokenServer]:
    with broken_model() as server:
        yield server


@pytest.fixture(scope="module")
def before_broken(started: Start, broken: BrokenServer) -> dict[str, Service]:
    """Proxies before a model that breaks in the way that the question says."""
    at = {"upstream": broken.port}
    return {mode: started("llm_proxy", at, mode=mode, read_timeout_s=SILENCE_S) for mode in MODES}


@pytest.fixture(params=MODES)
def over_broken(request: pytest.FixtureRequest, before_broken: dict[str, Service]) -> Service:
    return before_broken[request.param]


def test_the_answer_is_that_of_the_model_in_one_piece_or_streamed(
    model: Service, proxy: Service
) -> None:
    own, told = ask(model.port, question()), ask(proxy.port, question())
    assert told.status == 200
    assert told.words == own.words != []
    assert told.headers["content-type"].split(";")[0] == own.headers["content-type"].split(";")[0]
    if proxy.launch.settings["mode"] != "rebuild":
        assert told.chunks == own.chunks
    if proxy.launch.settings["mode"] == "raw":
        assert told.body == own.body
    wholes = [ask(port, question(stream=False)).json for port in (model.port, proxy.port)]
    assert wholes[0]["choices"][0]["message"] == wholes[1]["choices"][0]["message"]
    told = ask(proxy.port, question(tools=[TOOL]))
    assert b'"add"' in told.body
    assert not told.words


def test_its_phases_and_counts_say_what_it_did(model: Service, proxy: Service) -> None:
    assert call(proxy.port, "POST", "/reset", {}).status == 200
    told = ask(proxy.port, question())
    phases = [entry.split(";dur=") for entry in told.headers["server-timing"].split(", ")]
    assert [name for name, _ in phases] == ["connect", "headers", "first_chunk", "app"]
    assert [float(ms) for _, ms in phases] == sorted(float(ms) for _, ms in phases)
    now = counts(proxy)
    assert (now["requests"], now["completed"], now["open"], now["streams_open"]) == (1, 1, 0, 0)
    assert (now["upstream_stopped"], now["refused"]) == (0, {})
    assert now["chunks"] == 8 or proxy.launch.settings["mode"] == "raw"
    assert now["bytes_read"] == len(ask(model.port, question()).body)


def test_what_is_no_request_is_refused_in_the_format_of_the_api(proxy: Service) -> None:
    cases: list[tuple[Any, int]] = [
        ("{", 400), ([], 422), ({"model": "stand-in"}, 422), (question(stream="yes"), 422),
        (question(model="another"), 404),
    ]  # fmt: skip
    for body, status in cases:
        told = ask(proxy.port, body)
        assert told.status == status
        assert told.json["error"]["message"] != ""
    assert ask(proxy.port, {}, "/v1/nothing").json["error"]["code"] == "unknown_path"


def test_a_model_that_breaks_is_told_in_the_stream_or_by_its_status(over_broken: Service) -> None:
    proxy, before = over_broken, counts(over_broken)
    faults = {"dies": "broke off", "error": "on purpose", "unfinished": "last chunk"}
    for fault, reason in faults.items():
        told = ask(proxy.port, question(text=fault))
        assert told.status == 200
        # What was on its way when the connection broke may be lost with it.
        assert len(told.words) <= 2
        # Raw does not see an error of the model's own, and may tell of the missing end after it.
        assert reason in told.body.decode()
        assert "[DONE]" not in told.body.decode()
    for fault, status in [("dies", 502), ("busy", 503)]:
        told = ask(proxy.port, question(text=fault, stream=False))
        assert (told.status, "error" in told.json) == (status, True)
    assert counts(proxy)["failed"] - before["failed"] >= 3
    assert counts(proxy)["open"] == 0


def test_a_wrong_chunk_is_found_by_whoever_looks_at_it(
    before_broken: dict[str, Service],
) -> None:
    told = ask(before_broken["rebuild"].port, question(text="malformed"))
    assert (len(told.words), told.error["code"]) == (2, "upstream_malformed")
    for mode in ("pass", "raw"):
        told = ask(before_broken[mode].port, question(text="malformed"))
        assert b"half a chu" in told.body
    told = ask(before_broken["pass"].port, question(text="huge"))
    assert (len(told.words), told.error["code"]) == (2, "too_long"), "it must hold it whole"
    assert len(ask(before_broken["raw"].port, question(text="huge")).body) > 1_000_000


def test_a_model_that_falls_silent_is_given_up(before_broken: dict[str, Service]) -> None:
    told = ask(before_broken["pass"].port, question(text="silent"))
    assert (told.status, told.json["error"]["code"]) == (504, "upstream_silent")
    told = ask(before_broken["raw"].port, question(text="stalls"))
    assert (len(told.words), told.error["code"]) == (2, "upstream_silent")


@pytest.mark.parametrize("fault", ["endless", "silent"])
def test_when_the_client_goes_the_model_is_read_no_more(
    broken: BrokenServer, over_broken: Service, fault: str
) -> None:
    """Before the time-out of the silence; promised is a second."""
    proxy, before = over_broken, counts(over_broken)
    begun = broken.begun
    with asking(proxy.port, text=fault):
        wait_until(lambda: broken.begun == begun + 1, timeout_s=20)
        if fault == "endless":
            until(proxy, lambda now: now["streams_open"] == 1)
    until(proxy, lambda now: now["open"] == now["streams_open"] == 0)
    wait_until(lambda: broken.ended == broken.begun, timeout_s=20)
    now = counts(proxy)
    assert now["aborted"] == before["aborted"] + 1
    assert now["refused"] == before["refused"], "it was the client, and not the time-out"
    assert now["upstream_stopped"] == before["upstream_stopped"] + (fault == "endless")


def test_a_model_that_is_down_is_told(started: Start) -> None:
    down = started("llm_proxy", {"upstream": quiet_port()})
    assert ask(down.port, question()).json["error"]["code"] == "upstream_down"


def test_a_proxy_without_descriptors_says_so_and_goes_on_when_it_has_some(
    started: Start, model: Service
) -> None:
    proxy = started("llm_proxy", {"upstream": model.port}, mode="pass")
    pid = proxy.instance.pid
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/settings")
        connection.getresponse().read()
        taken = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        none_left = next(number for number in count() if number not in taken)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (none_left, limits[1]))
        try:
            # Over a connection that is open, which needs no descriptor of its own.
            told = ask_over(connection, question())
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        assert (told.status, told.json["error"]["code"]) == (503, "out_of_files")
        assert len(ask_over(connection, question()).words) == 6
    assert counts(proxy)["refused"] == {"out_of_files": 1}
