"""Parts of the proxy: how streams are cut into chunks, wherever their parts were cut on the way."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_proxy.modes import mode_of
from llm_proxy.rebuilding import rebuilt
from llm_proxy.settings import Settings
from specimen.settings import read

from tests.load.meter import cut

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=5)
CUTS = st.lists(st.integers(0), max_size=30)


def events(words: list[str], end: str = "\n") -> bytes:
    texts = [json.dumps({"choices": [{"index": 0, "delta": {"content": word}}]}) for word in words]
    return "".join(f"data: {text}{end}{end}" for text in [*texts, "[DONE]"]).encode()


def passed(name: str, data: bytes, cuts: list[int]) -> list[str | bytes]:
    mode = mode_of(name)
    chunks = [chunk for part in cut(data, cuts) for chunk in mode.feed(part)]
    mode.end()
    assert mode.is_whole
    return chunks


@given(WORDS, CUTS, st.sampled_from(["\n", "\r\n"]))
def test_events_are_passed_and_rebuilt_one_by_one_wherever_they_are_cut(
    words: list[str], cuts: list[int], end: str
) -> None:
    data = events(words, end)
    for name in ("pass", "rebuild"):
        *chunks, last = passed(name, data, cuts)
        told = [json.loads(chunk)["choices"][0]["delta"]["content"] for chunk in chunks]
        assert (told, last) == (words, "[DONE]")
    assert passed("raw", data, cuts) == cut(data, cuts)


def test_what_is_rebuilt_has_the_parts_that_are_known_and_no_other() -> None:
    given_chunk = {
        "id": "1", "x": 1,
        "choices": [{"index": 0, "logprobs": None, "delta": {"content": "a", "y": 2}}],
    }  # fmt: skip
    assert json.loads(rebuilt(json.dumps(given_chunk))) == {
        "id": "1", "choices": [{"index": 0, "finish_reason": None, "delta": {"content": "a"}}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("MODE", "magic", "one of rebuild, pass, raw"), ("READ_TIMEOUT_S", "nan", "a finite number"),
     ("PORT", "x", "a whole number")],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_refused_by_its_variable(
    name: str, value: str, words: str
) -> None:
    assert read(Settings, "LLM_PROXY_", {"LLM_PROXY_MODE": "raw"}) == Settings(mode="raw")
    with pytest.raises(ValueError, match=f"LLM_PROXY_{name} = '{value}' must be {words}"):
        read(Settings, "LLM_PROXY_", {f"LLM_PROXY_{name}": value})
