"""The proxy as a service: what it passes on, what it says of faults, and what a reader leaves."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from asking_models import (
    APIS,
    MODES,
    OLLAMA,
    OPENAI,
    TOOL,
    ask,
    ask_model,
    asking,
    counts,
    question,
    until,
)  # fmt: skip
from running import SECRET, Service, Start, call, quiet_port

pytestmark = pytest.mark.slow
SILENCE_S = 2.0


@pytest.fixture(scope="module")
def model(started: Start) -> Service:
    """As fast as it is read."""
    return started("llm_upstream", tokens=6, token_rate=0, first_token_ms=0)


@pytest.fixture(scope="module")
def proxies(started: Start, model: Service) -> dict[str, Service]:
    at = {"upstream": model.port}
    limits = {"read_timeout_s": SILENCE_S, "max_body_bytes": 100_000}
    return {mode: started("llm_proxy", at, mode=mode, **limits) for mode in MODES}


@pytest.fixture(params=MODES)
def proxy(request: pytest.FixtureRequest, proxies: dict[str, Service]) -> Service:
    return proxies[request.param]


@pytest.mark.parametrize("path", APIS)
def test_the_answer_is_that_of_the_model_in_one_piece_or_streamed(
    model: Service, proxy: Service, path: str
) -> None:
    own, told = ask_model(model, path, question()), ask(proxy.port, path, question())
    assert told.status == 200
    assert told.words == own.words != []
    assert told.headers["content-type"].split(";")[0] == own.headers["content-type"].split(";")[0]
    if proxy.launch.settings["mode"] != "rebuild":
        assert told.chunks == own.chunks
    wholes = ask_model(model, path, question(stream=False)), ask(
        proxy.port, path, question(stream=False)
    )  # fmt: skip
    said = [str(each.json.get("message") or each.json["choices"][0]["message"]) for each in wholes]
    assert said[0] == said[1]


def test_raw_gives_the_very_bytes(model: Service, proxies: dict[str, Service]) -> None:
    for path in APIS:
        own = ask_model(model, path, question())
        assert ask(proxies["raw"].port, path, question()).body == own.body


@pytest.mark.parametrize("path", APIS)
def test_calls_of_tools_pass(proxy: Service, path: str) -> None:
    before = counts(proxy)["with_tools"]
    told = ask(proxy.port, path, question(tools=[TOOL]))
    assert b'"add"' in told.body
    assert not told.words
    assert counts(proxy)["with_tools"] == before + 1


def test_its_phases_and_counts_say_what_it_did(model: Service, proxy: Service) -> None:
    assert call(proxy.port, "POST", "/reset", {}).status == 200
    told = ask(proxy.port, OPENAI, question(), X_Request_Id="seen-from-both-sides")
    phases = [entry.split(";dur=") for entry in told.headers["server-timing"].split(", ")]
    assert [name for name, _ in phases] == ["connect", "headers", "first_chunk", "app"]
    assert [float(ms) for _, ms in phases] == sorted(float(ms) for _, ms in phases)
    sent = call(model.port, "GET", "/streams?last=1").body["streams"][0]
    assert sent["request_id"] == "seen-from-both-sides"
    assert str(sent["stream"]) == told.headers["x-stream"]
    now = counts(proxy)
    assert (now["requests"], now["completed"], now["open"], now["streams_open"]) == (1, 1, 0, 0)
    assert (now["upstream_stopped"], now["refused"]) == (0, {})
    assert now["chunks"] == 8 or proxy.launch.settings["mode"] == "raw"
    assert now["bytes_read"] == len(ask_model(model, OPENAI, question()).body)


@pytest.mark.parametrize("path", APIS)
def test_what_is_no_request_is_refused_in_the_format_of_the_api(proxy: Service, path: str) -> None:
    cases: list[tuple[Any, int]] = [
        ("{", 400), ([], 422), ({"model": "stand-in"}, 422), (question(stream="yes"), 422),
        (question(model="another"), 404), (question(text="x" * 100_001), 413),
    ]  # fmt: skip
    for body, status in cases:
        told = ask(proxy.port, path, body)
        assert told.status == status
        error = told.json["error"]
        assert (error if path == OLLAMA else error["message"]) != ""
    assert ask(proxy.port, "/v1/nothing", {}).json["error"]["code"] == "unknown_path"
    assert ask(proxy.port, "/api/nothing", {}).status == 404


@pytest.mark.parametrize("path", APIS)
def test_a_model_that_breaks_is_told_in_the_stream_or_by_its_status(
    proxy: Service, path: str
) -> None:
    before = counts(proxy)
    for fault, words, reason in [
        ("dies", 2, "broke off"), ("error", 2, "on purpose"), ("unfinished", 6, "last chunk"),
    ]:  # fmt: skip
        if (proxy.launch.settings["mode"], path, fault) == ("raw", OLLAMA, "unfinished"):
            continue  # Nobody looked into it.
        told = ask(proxy.port, path, question(), X_Fault=fault, X_Fault_After="2")
        assert told.status == 200
        # What was on its way when the connection broke may be lost with it.
        assert len(told.words) <= words
        # Raw does not see an error of the model's own, and may tell of the missing end after it.
        assert reason in (told.body.decode() if fault == "error" else str(told.error))
        assert "[DONE]" not in told.body.decode()
    for fault, status in [("dies", 502), ("error", 500), ("busy", 503)]:
        told = ask(proxy.port, path, question(stream=False), X_Fault=fault)
        assert (told.status, "error" in told.json) == (status, True)
    assert counts(proxy)["failed"] - before["failed"] >= 4
    assert counts(proxy)["open"] == 0


@pytest.mark.parametrize("path", APIS)
def test_a_chunk_that_is_no_json_is_found_by_whoever_parses(
    proxies: dict[str, Service], path: str
) -> None:
    told = ask(proxies["rebuild"].port, path, question(), X_Fault="malformed", X_Fault_After="2")
    assert len(told.words) == 2
    assert "no JSON" in str(told.error)
    for mode in ("pass", "raw"):
        told = ask(proxies[mode].port, path, question(), X_Fault="malformed", X_Fault_After="2")
        assert b"half a chu" in told.body
        with pytest.raises(json.JSONDecodeError):
            told.chunks  # noqa: B018


def test_a_huge_chunk_is_refused_by_whoever_must_hold_it_whole(proxies: dict[str, Service]) -> None:
    for mode in ("rebuild", "pass"):
        told = ask(proxies[mode].port, OPENAI, question(), X_Fault="huge", X_Fault_After="2")
        assert (len(told.words), told.error["code"]) == (2, "chunk_too_large")
    told = ask(proxies["raw"].port, OPENAI, question(), X_Fault="huge")
    assert len(told.body) > 4_000_000
    for proxy in proxies.values():
        told = ask(proxy.port, OPENAI, question(stream=False), X_Fault="huge")
        assert (told.status, told.json["error"]["code"]) == (502, "answer_too_large")


def test_a_model_that_falls_silent_is_given_up(proxies: dict[str, Service]) -> None:
    told = ask(proxies["pass"].port, OLLAMA, question(), X_Fault="silent")
    assert (told.status, "in time" in told.json["error"]) == (504, True)
    told = ask(proxies["raw"].port, OPENAI, question(), X_Fault="stalls", X_Fault_After="2")
    assert (len(told.words), told.error["code"]) == (2, "upstream_silent")
    told = ask(proxies["rebuild"].port, OPENAI, question(stream=False), X_Fault="stalls")
    assert told.status == 504


@pytest.mark.parametrize("fault", ["endless", "silent"])
@pytest.mark.parametrize("path", APIS)
def test_when_the_client_goes_the_model_is_read_no_more(
    model: Service, proxy: Service, path: str, fault: str
) -> None:
    """Promised within a second; this machine may be three times as slow."""
    until(model, lambda now: now["open"] == 0)
    before, was = counts(proxy), counts(model)
    with asking(proxy.port, path, X_Fault=fault):
        until(model, lambda now: now["begun"] == was["begun"] + 1 and now["open"] == 1)
        if fault == "endless":
            until(proxy, lambda now: now["streams_open"] == 1)
    until(model, lambda now: now["open"] == 0, timeout_s=3)
    until(proxy, lambda now: now["open"] == now["streams_open"] == 0)
    now = counts(proxy)
    assert now["aborted"] == before["aborted"] + 1
    assert counts(model)["aborted"] == was["aborted"] + 1
    assert now["refused"] == before["refused"]
    assert now["upstream_stopped"] == before["upstream_stopped"] + (fault == "endless")


def test_a_slow_reader_holds_the_model_back_and_no_memory(model: Service, proxy: Service) -> None:
    until(model, lambda now: now["open"] == 0)
    rss_bytes = counts(proxy)["rss_bytes"]
    with asking(proxy.port, receive_bytes=8192, X_Fault="endless"):
        sent = steady(model)
        time.sleep(1)
        assert counts(model)["bytes_sent"] == sent, "held back, not only slower"
        assert counts(proxy)["streams_open"] == 1
        assert counts(proxy)["rss_bytes"] < rss_bytes + 20_000_000
    until(model, lambda now: now["open"] == 0, timeout_s=3)


def steady(model: Service) -> int:
    """Return what the model has sent once it sends no more."""
    seen = [-2, -1]

    def still(now: dict[str, Any]) -> bool:
        seen.append(now["bytes_sent"])
        time.sleep(0.2)
        return seen[-1] == seen[-2] == seen[-3] > 0

    until(model, still)
    return seen[-1]


def test_a_thousand_aborted_streams_leave_nothing(model: Service, proxy: Service) -> None:
    path = OPENAI if proxy.launch.settings["mode"] != "raw" else OLLAMA

    def abort(number: int, clients: int) -> None:
        for each in range(number, clients, 10):
            with asking(proxy.port, path, X_Fault=("stalls", "silent")[each % 2]) as client:
                if each % 2 == 0:
                    client.recv(1000)

    def abort_many(clients: int) -> None:
        threads = [threading.Thread(target=abort, args=(each, clients)) for each in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(proxy, lambda now: now["open"] == now["streams_open"] == 0)
        until(model, lambda now: now["open"] == 0)

    abort_many(50)
    before, was = counts(proxy), counts(model)
    abort_many(1000)
    until(proxy, lambda now: now["files"] <= before["files"] + 5)
    until(proxy, lambda now: now["tasks"] <= before["tasks"] + 5)
    after = counts(proxy)
    # One that goes before its request was read is none; the others had begun.
    assert 500 <= after["aborted"] - before["aborted"] <= 1000
    assert counts(model)["aborted"] - was["aborted"] >= 500
    # One stream's buffers are over 100 KB: a thousand of them would be 100 MB.
    assert after["rss_bytes"] < before["rss_bytes"] + 30_000_000
    assert len(ask(proxy.port, path, question()).words) == 6


def test_counts_are_kept_while_requests_are_under_way(proxies: dict[str, Service]) -> None:
    proxy = proxies["pass"]
    with asking(proxy.port, X_Fault="endless"):
        until(proxy, lambda now: now["streams_open"] == 1)
        refused = call(proxy.port, "POST", "/reset", {})
    assert (refused.status, refused.body["error"]["code"]) == (409, "streams_under_way")
    assert call(proxy.port, "GET", "/settings").body["mode"] == "pass"


def test_a_key_that_is_refused_is_told_without_being_shown(
    started: Start, model: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "not-the-key-at-all")
    url = f"http://127.0.0.1:{model.port}"
    proxy = started("llm_proxy", {"upstream": quiet_port()}, upstream_url=url)
    told = ask(proxy.port, OPENAI, question())
    assert (told.status, told.json["error"]["code"]) == (502, "upstream_refuses")
    # A client's own key is for the proxy, and never the model's.
    assert ask(proxy.port, OPENAI, question(), SECRET).status == 502
    process = Path(f"/proc/{proxy.instance.pid}")
    shown = [told.body.decode(), str(call(proxy.port, "GET", "/settings").body)]
    shown += [
        proxy.instance.log(),
        *((process / name).read_text() for name in ("environ", "cmdline")),
    ]
    for text in shown:
        assert "not-the-key" not in text
        assert SECRET not in text


def test_a_model_that_is_down_is_told(started: Start) -> None:
    proxy = started("llm_proxy", {"upstream": quiet_port()})
    told = ask(proxy.port, OPENAI, question())
    assert (told.status, told.json["error"]["code"]) == (503, "upstream_down")
