"""The stand-in for a model: the same answer to the same request, at its pace, broken on purpose."""

from __future__ import annotations

import http.client
import itertools
import json
from typing import Any

import pytest
from asking_models import (
    APIS,
    MODEL,
    OLLAMA,
    OPENAI,
    TOOL,
    Told,
    ask,
    ask_model,
    asking,
    counts,
    question,
    until,
)
from hypothesis import given
from hypothesis import strategies as st
from llm_upstream.refusal import Refused
from llm_upstream.requested import read_ollama, read_openai
from llm_upstream.script import due_ns, script
from llm_upstream.settings import Settings, from_environment
from running import SECRET, Service, Start, call

MS = 1_000_000


def decided(body: dict[str, Any], stream: int = 1, **settings: Any) -> Any:
    return script(read_openai(json.dumps(body).encode()), Settings(**settings), stream)


def dues(count: int, seed: int = 1, **settings: Any) -> list[int]:
    return list(itertools.islice(due_ns(Settings(**settings), seed), count))


def test_at_temperature_0_the_same_request_has_the_same_answer_however_it_is_written() -> None:
    first, other = decided(question(temperature=0)), decided({**question(), "user": "me"}, stream=2)
    assert list(first.words()) == list(other.words())
    assert list(first.words()) != list(decided(question(text="and why?")).words())
    assert list(first.words()) != list(decided(question(), seed=1).words())


def test_at_another_temperature_it_depends_on_the_seed_or_on_which_stream_it_is() -> None:
    def said(stream: int, **more: Any) -> list[str]:
        return list(decided(question(temperature=1, **more), stream).words())

    assert said(1) != said(2)
    assert said(1, seed=3) == said(2, seed=3) != said(2, seed=4)


def test_both_apis_say_the_same() -> None:
    body = json.dumps(question()).encode()
    assert read_openai(body).digest == read_ollama(body).digest


def test_an_answer_is_as_long_as_set_or_as_the_request_allows() -> None:
    assert len(list(decided(question(), tokens=7).words())) == 7
    cut = decided(question(max_tokens=3), tokens=7)
    assert (len(list(cut.words())), cut.finish) == (3, "length")


def test_tokens_are_due_at_their_rate_from_the_first_one_on() -> None:
    assert dues(4, first_token_ms=30, token_rate=100) == [30 * MS, 40 * MS, 50 * MS, 60 * MS]
    assert dues(3, first_token_ms=30, token_rate=0) == [30 * MS] * 3


@given(st.integers(0, 1000), st.floats(0, 100), st.floats(1, 10_000))
def test_jitter_makes_each_token_late_by_itself_and_never_drifts(
    seed: int, jitter_ms: float, rate: float
) -> None:
    settings = {"first_token_ms": 5.0, "token_rate": rate}
    exact = dues(50, seed, **settings)
    late = dues(50, seed, jitter_ms=jitter_ms, **settings)
    assert late == dues(50, seed, jitter_ms=jitter_ms, **settings)
    assert late == sorted(late)
    assert all(0 <= due - at <= jitter_ms * MS + 1 for due, at in zip(late, exact, strict=True))


@given(st.binary(max_size=200) | st.builds(lambda each: json.dumps(each).encode(), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["model", "messages", "role", "content", "tools", "function", "stream",
                         "options", "seed", "temperature", "stream_options", "max_tokens"]),
        inner, max_size=5), max_leaves=20)))  # fmt: skip
def test_any_body_is_read_or_refused_as_400(body: bytes) -> None:
    for read in (read_openai, read_ollama):
        try:
            answered = read(body).model
        except Refused as refused:
            answered = refused.status
        assert answered == 400 or isinstance(answered, str)


@pytest.mark.parametrize(
    ("name", "value"),
    [("TOKENS", "0"), ("TOKEN_RATE", "nan"), ("JITTER_MS", "-1"), ("FAULT", "magic")],
)
def test_a_setting_of_the_stand_in_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"LLM_UPSTREAM_{name}"):
        from_environment({f"LLM_UPSTREAM_{name}": value})


@pytest.fixture(scope="module")
def model(started: Start) -> Service:
    return started(
        "llm_upstream", tokens=6, token_rate=200, first_token_ms=10, jitter_ms=3, kept_streams=5
    )


def called(told: Told) -> list[Any]:
    """Return the tools that a streamed answer calls, with their arguments."""
    found = []
    for chunk in told.chunks:
        for part in (*(each["delta"] for each in chunk.get("choices", ())),
                     chunk.get("message", {})):  # fmt: skip
            found += [each["function"] for each in part.get("tool_calls") or ()]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", APIS)
def test_a_stream_and_an_answer_in_one_piece_say_the_same(model: Service, path: str) -> None:
    streamed = ask_model(model, path, question())
    whole = ask_model(model, path, question(stream=False)).json
    message = whole["message"] if path == OLLAMA else whole["choices"][0]["message"]
    assert len(streamed.words) == 6
    assert "".join(streamed.words) == message["content"]
    if path == OPENAI:
        assert streamed.events[-1] == "[DONE]"
        assert whole["usage"] == {"prompt_tokens": 4, "completion_tokens": 6, "total_tokens": 10}
    else:
        assert (streamed.chunks[-1]["done"], whole["eval_count"]) == (True, 6)


@pytest.mark.slow
def test_usage_comes_at_the_end_of_a_stream_that_asks_for_it(model: Service) -> None:
    told = ask_model(model, OPENAI, question(stream_options={"include_usage": True}))
    assert told.chunks[-1]["usage"]["completion_tokens"] == 6


@pytest.mark.slow
def test_both_lists_hold_the_one_model_and_another_is_unknown(model: Service) -> None:
    assert call(model.port, "GET", "/v1/models").body["data"][0]["id"] == MODEL
    assert call(model.port, "GET", "/api/tags").body["models"][0]["name"] == MODEL
    told = ask_model(model, OPENAI, question(model="another"))
    assert (told.status, told.json["error"]["code"]) == (404, "model_not_found")


@pytest.mark.slow
@pytest.mark.parametrize("path", APIS)
def test_two_tools_are_called_one_after_the_other_before_the_answer(
    model: Service, path: str
) -> None:
    body, seen = question(tools=[TOOL]), []
    for _ in range(2):
        told = ask_model(model, path, body)
        seen.append(called(told))
        assert not told.words
        body["messages"] += [{"role": "assistant", "content": ""}, {"role": "tool", "content": "3"}]
    assert [each[0]["name"] for each in seen] == ["add", "add"]
    given = [each[-1]["arguments"] for each in seen]
    wanted = [{"a": 1, "unit": "km"}, {"a": 2, "unit": "mi"}]
    assert [json.loads(each) if path == OPENAI else each for each in given] == wanted
    assert len(ask_model(model, path, body).words) == 6


@pytest.mark.slow
def test_it_keeps_when_each_token_of_the_latest_streams_was_due_and_was_sent(
    model: Service,
) -> None:
    for number in range(7):
        last = ask_model(model, OPENAI, question(), X_Request_Id=f"mine-{number}")
    kept = call(model.port, "GET", "/streams?last=100").body["streams"]
    assert [each["request_id"] for each in kept] == [f"mine-{number}" for number in range(2, 7)]
    assert int(last.headers["x-stream"]) == kept[-1]["stream"]
    assert [each["outcome"] for each in kept] == ["ended"] * 5
    settings = call(model.port, "GET", "/settings").body
    for each in kept:
        assert len(each["due_ns"]) == len(each["sent_ns"]) == 6
        # Never early; and each is due by itself, however late the one before it was.
        assert all(sent >= due for sent, due in zip(each["sent_ns"], each["due_ns"], strict=True))
        first = each["begun_ns"] + settings["first_token_ms"] * MS
        for number, due in enumerate(each["due_ns"]):
            assert 0 <= due - first - number * 5 * MS <= settings["jitter_ms"] * MS


@pytest.mark.slow
def test_without_the_stacks_key_nobody_is_served(model: Service) -> None:
    for key in ("", "wrong"):
        told = ask(model.port, OPENAI, question(), key)
        assert (told.status, told.json["error"]["code"]) == (401, "invalid_api_key")
    assert SECRET not in str(call(model.port, "GET", "/settings").body)


@pytest.mark.slow
def test_a_reader_who_goes_is_noticed_and_told_no_more(model: Service) -> None:
    call(model.port, "POST", "/reset", {})
    bearer = f"Bearer {SECRET}"
    with asking(model.port, Authorization=bearer, X_Fault="endless") as client:
        assert client.recv(12) == b"HTTP/1.1 200"
        assert counts(model)["open"] == 1
    with asking(model.port, Authorization=bearer, X_Fault="silent"):
        until(model, lambda now: now["begun"] == 2)
    until(model, lambda now: now["open"] == 0)
    assert (counts(model)["aborted"], counts(model)["ended"]) == (2, 0)


@pytest.mark.slow
@pytest.mark.parametrize("path", APIS)
def test_each_fault_comes_after_so_many_tokens(model: Service, path: str) -> None:
    def broken(fault: str, **more: Any) -> Told:
        return ask_model(model, path, question(**more), X_Fault=fault, X_Fault_After="2")

    assert broken("busy").status == 503
    with pytest.raises(http.client.IncompleteRead) as cut:
        broken("dies")
    assert cut.value.partial.count(b'"content"') == 2
    told = broken("error")
    assert (len(told.words), "on purpose" in str(told.error)) == (2, True)
    with pytest.raises(json.JSONDecodeError):
        broken("malformed").chunks  # noqa: B018
    assert len(max(broken("huge").words, key=len)) == 4_000_000
    told = broken("unfinished")
    assert len(told.words) == 6
    assert b"[DONE]" not in told.body
    assert b'"done":true' not in told.body
    assert broken("magic").status == 400
    assert broken("error", stream=False).status == 500
