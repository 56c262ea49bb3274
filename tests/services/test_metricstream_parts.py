"""The parts of the metricstream server: its two parsers, its stores, and its reader of HTTP."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from compiling import ADDRESS, FEW_PARTS, THREAD, program, run
from hypothesis import example, given, settings
from hypothesis import strategies as st

# A compiler under load may need minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SCALARS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS | st.integers(-(2**70), 2**70),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
METRICS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES, "value": st.floats(allow_nan=False, allow_infinity=False)},
        optional={"unit": st.text()},
    ),
    max_size=5,
)
# What cuts and joins of a text are made with, to have many that are nearly JSON.
PIECES = st.sampled_from(
    ["", ",", "]", "}", '"', "\\", "\\u12", "\\ud800", "\\ud83d\\ude00", "1e999", "01", "-", "1.",
     ".5", "tru", "null", "\n", "\x00", " ", "+1", "NaN", "Infinity", "1e-999", "'", "//", "\ufeff"]
)  # fmt: skip
MAX_DEPTH = 32
# Each starts a program, and holds up to 60 texts.
FEW = settings(deadline=None, max_examples=25)


def words_for(texts: list[bytes]) -> list[str]:
    """Return what both parsers say of each text, where they agree: batch, json or no json."""
    told = "".join(f"{text.hex()}\n" for text in texts)
    return run(program("parse_lines", *ADDRESS), told=told).split("\n")[:-1]


def expected(text: bytes) -> str:
    """Return what Python's own parser makes of a text, with the server's bounds."""
    try:
        value = json.loads(
            text.decode(), parse_constant=refused, parse_int=finite, parse_float=finite
        )
        # Python takes half a surrogate pair, which no UTF-8 can tell.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return "no json"
    return "no json" if depth(value) > MAX_DEPTH + 1 else "json"


def refused(word: str) -> None:
    raise ValueError(word)


def finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(digits)
    return value


def depth(value: Any) -> int:
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 1 if inner is None else 1 + max(map(depth, inner), default=0)


def nested(times: int) -> bytes:
    return b"[" * times + b"]" * times


@FEW
@given(st.lists(st.tuples(VALUES, st.integers(0, 200), PIECES), min_size=1, max_size=60))
@example([({"a": [1, {"b": "\u00e9\U0001f600"}]}, 3, "")])
def test_both_parsers_take_what_python_takes_and_refuse_the_rest(
    drawn: list[tuple[Any, int, str]],
) -> None:
    whole = [json.dumps(value).encode() for value, _, _ in drawn]
    plain = [
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        for value, _, _ in drawn
    ]
    broken = [
        text[: at % (len(text) + 1)] + piece.encode() + text[at % (len(text) + 1) :]
        for text, (_, at, piece) in zip(whole, drawn, strict=True)
    ]
    texts = whole + plain + broken
    said = ["json" if word == "batch" else word for word in words_for(texts)]
    assert dict(zip(texts, said, strict=True)) == {text: expected(text) for text in texts}


@FEW
@given(st.lists(st.tuples(NAMES, METRICS), min_size=1, max_size=20))
def test_a_batch_is_recognised_by_both_parsers(drawn: list[tuple[str, Any]]) -> None:
    bodies = [
        json.dumps({"client": client, "metrics": metrics}).encode() for client, metrics in drawn
    ]
    fits = [
        all(0 < len(name.encode()) <= 128 for name in [client, *(each["name"] for each in metrics)])
        for client, metrics in drawn
    ]
    assert words_for(bodies) == ["batch" if fit else "json" for fit in fits]


def test_bounds_and_oddities_of_json_are_the_same_to_both_parsers() -> None:
    said = {
        nested(MAX_DEPTH + 1): "json", nested(MAX_DEPTH + 2): "no json", nested(30_000): "no json",
        b"1e308": "json", b"1e309": "no json", b"-1e309": "no json", b"1e-999": "json",
        b'"\xed\xa0\x80"': "no json", b'"\xc0\x80"': "no json", b'"\xf4\x90\x80\x80"': "no json",
        b'"\\udc00"': "no json", b'"\\ud800\\u0041"': "no json", b'"\t"': "no json", b"": "no json",
        b'{"client": "a", "client": "a", "metrics": []}': "json",
        b'{"client": "a", "metrics": [{"name": "m", "value": "1"}]}': "json",
        b'{"client": "", "metrics": []}': "json",
        b'{"client": "a", "metrics": []}': "batch",
    }  # fmt: skip
    assert dict(zip(said, words_for(list(said)), strict=True)) == said


def test_ring_queue_counts_heads_and_phases_each_keep_their_promises() -> None:
    run(program("parts", "-O0", parts=FEW_PARTS))


def test_stores_lose_nothing_pass_no_bound_and_have_no_race() -> None:
    run(program("stores", *THREAD))


def test_ten_thousand_mutated_requests_find_no_fault_and_both_parsers_alike() -> None:
    seed = str(int(time.time()))
    assert run(program("fuzz", *ADDRESS), "10000", seed) == "10000\n", f"seed {seed}"
