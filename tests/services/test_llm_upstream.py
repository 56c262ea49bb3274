"""The stand-in for a model: the same answer to the same request, at its pace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asking_models import (
    TOOL,
    Told,
    ask,
    asking,
    question,
)
from llm_upstream.requested import read
from llm_upstream.script import Script, script
from llm_upstream.settings import Settings
from running import Service, Start, call, counts, until

MS = 1_000_000
TOKENS, RATE, FIRST_MS = 6, 200, 10


def decided(body: dict[str, Any], **settings: Any) -> Script:
    return script(read(json.dumps(body).encode()), Settings(**settings))


def test_the_same_request_has_the_same_answer_however_it_is_written() -> None:
    first, other = decided(question(temperature=0)), decided({**question(), "user": "me"})
    assert list(first.words()) == list(other.words())
    assert list(first.words()) != list(decided(question(text="and why?")).words())
    assert len(list(decided(question(), tokens=7).words())) == 7
    fast = Settings(token_rate=0)
    assert fast.due_ns(1000) == fast.due_ns(0)


@pytest.fixture(scope="module")
def model(started: Start) -> Service:
    given = {"token_rate": RATE, "first_token_ms": FIRST_MS, "kept_streams": 5}
    return started("llm_upstream", tokens=TOKENS, **given)


def called(told: Told) -> list[Any]:
    """Return the tools that a streamed answer calls, with their arguments."""
    return [call["function"] for part in told.parts for call in part.get("tool_calls") or ()]


@pytest.mark.slow
def test_two_tools_are_called_one_after_the_other_before_the_answer(model: Service) -> None:
    body, seen = question(tools=[TOOL]), []
    for _ in range(2):
        told = ask(model.port, body)
        seen.append(called(told))
        assert not told.words
        body["messages"] += [{"role": "assistant", "content": ""}, {"role": "tool", "content": "3"}]
    assert [calls[0]["name"] for calls in seen] == ["add", "add"]
    given = [calls[-1]["arguments"] for calls in seen]
    wanted = [{"a": 1, "unit": "km"}, {"a": 2, "unit": "mi"}]
    assert [json.loads(text) for text in given] == wanted
    assert len(ask(model.port, body).words) == TOKENS


@pytest.mark.slow
def test_it_keeps_when_each_token_of_the_latest_streams_was_due_and_was_sent(
    model: Service,
) -> None:
    for _ in range(7):
        ask(model.port, question())
    kept = call(model.port, "GET", "/streams").body["streams"]
    assert len(kept) == 5
    for stream in kept:
        # Never early; and each is due by itself, however late the one before it was.
        assert all(
            sent >= due for sent, due in zip(stream["sent_ns"], stream["due_ns"], strict=True)
        )
        since = [due - stream["begun_ns"] for due in stream["due_ns"]]
        assert since == [(FIRST_MS + 5 * token) * MS for token in range(TOKENS)]


@pytest.mark.slow
def test_a_reader_who_goes_is_noticed_and_told_no_more(started: Start) -> None:
    model = started("llm_upstream", tokens=100_000, token_rate=10, first_token_ms=0)
    with asking(model.port) as client:
        assert client.recv(12) == b"HTTP/1.1 200"
        assert call(model.port, "POST", "/reset", {}).status == 409
    until(model, lambda now: now["open"] == 0)
    now = counts(model)
    assert (now["begun"], now["aborted"], now["ended"]) == (1, 1, 0)
