"""Answers under load that are like none that was checked are told, and others are not."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from perflab.analysis.doubts.answer_classes import (
    AnswerClass,
    Answers,
    class_of,
    failure_in,
    keys_as_text,
    keys_from_text,
)
from perflab.analysis.doubts.new_answers import Checked, risen, unseen

RPC = {"jsonrpc": "2.0", "id": 1, "result": {"total": 42, "items": [1, 2, 3]}}
RPC_ERROR = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "Internal error"}}
LOGIN = b"<html><form>" + b"login " * 100 + b"</form></html>"
JSON, HTML = "application/json", "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("document", "status", "told"),
    [
        ({"error": {"code": 1}}, 200, "have an object in error"),
        ({"errors": ["busy"], "data": None}, 200, "have a list in errors"),
        ({"error": "busy"}, 200, "have a text in error"),
        ({"error": "busy"}, 404, ""),
        *(({"error": none, "data": [1]}, 200, "") for none in (None, "", 0, False, [], {})),
        ({"status": "fail", "id": 3}, 200, ""),
        ({"job": {"error": "busy"}}, 200, ""),
    ],
)
def test_an_error_with_a_status_of_success_is_seen(
    document: dict[str, Any], status: int, told: str
) -> None:
    assert failure_in(of(document, status=status)) == told


def of(document: Any, content_type: str = JSON, status: int = 200) -> AnswerClass:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return class_of(status, content_type, body, len(body))


def told(checked: list[AnswerClass], loaded: list[AnswerClass]) -> str:
    """Return what is said of answers under load, after so many checked ones."""
    found = unseen(counted(checked), counted_list(loaded))
    return f"{found.share:.0%} {found.words}" if found else ""


def counted_list(answers: list[AnswerClass]) -> list[Answers]:
    return [Answers(answer, number) for answer, number in Counter(answers).items()]


def counted(answers: list[AnswerClass]) -> Checked:
    return Checked(counted_list(answers))


@pytest.mark.parametrize(
    ("checked", "loaded", "expected"),
    [
        (of(RPC), of(RPC_ERROR), "have the keys error, id, jsonrpc"),
        (of([RPC]), of([RPC_ERROR]), "have the keys error, id, jsonrpc in elements"),
        (of([{"id": 1}] * 3), of([{"id": 1}, {"error": 1}]), "have the keys error, id in elements"),
        (of({"status": "ok"}), of({"status": "error"}), "have a word of failure in status"),
        (
            of({"data": {"user": {"id": 7}}}),
            of({"data": None, "errors": [{"message": "busy"}]}),
            "have the keys data, errors",
        ),
        (
            of({"data": {"user": {"id": 7}}}),
            of({"data": {"user": None}}),
            "have nothing in data.user",
        ),
        (of(RPC), of(LOGIN, HTML), "are text/html instead of application/json"),
        (of(b"<p>" + b"x" * 5000, HTML), of(LOGIN, HTML), "have a body of 626 bytes"),
        (of([1, 2, 3]), of([]), "are an empty list"),
        (of({"items": [1, 2], "n": 2}), of({"items": [], "n": 0}), "have nothing in items"),
        (of({"error": None, "result": [1]}), of({"error": "no", "result": None}), "have a text in"),
        (of({"success": True}), of({"success": False}), "have false in success"),
        (of({"items": [1]}), of(b"", JSON), "have an empty body"),
        (of(b"welcome", "text/plain"), of(b"", "text/plain"), "have an empty body"),
        (of(b"12345678", "text/plain"), of(b"sorry, busy", "text/plain"), "have a body of 11"),
        (of(RPC), of(RPC, status=202), "have status 202"),
        (of({"a": 1, "b": 2}), of({"a": 1}), "have the key a"),
    ],
)
def test_an_answer_that_is_not_like_the_checked_ones_is_told(
    checked: AnswerClass, loaded: AnswerClass, expected: str
) -> None:
    assert told([checked] * 20, [checked] * 95 + [loaded] * 5).startswith(f"5% {expected}")
    assert told([checked] * 20, [loaded] * 49 + [checked]).startswith(f"98% {expected}")
    assert told([checked] * 20, [checked] * 199 + [loaded]) == ""
    assert told([checked] * 10 + [loaded] * 10, [loaded] * 100) == ""


def varying(kind: str, chance: random.Random) -> AnswerClass:
    """Return an answer of a service whose answers differ, and are right."""
    match kind:
        case "ids":
            return of({"id": chance.randrange(10**9), "name": f"n{chance.randrange(10**6)}"})
        case "times":
            return of({"at": chance.random() * 1e9, "took_ms": chance.randrange(3)})
        case "random lists":
            return of({"items": [*range(chance.randrange(5))], "next": chance.choice([None, "x"])})
        case "random top-level lists":
            return of([{"id": 1} for _ in range(chance.randrange(200))][: chance.randrange(1, 99)])
        case "keys that are ids":
            return of({f"u{chance.randrange(10**9)}": 1 for _ in range(3)})
        case "keys that are ids, below":
            return of({"users": {f"u{chance.randrange(10**9)}": {} for _ in range(3)}})
        case "optional keys of elements":
            elements = ({k: 1 for k in "abcdef" if chance.random() < 0.4} for _ in range(5))
            return of([{"id": 1} | element for element in elements])
        case "words":
            words = ["active", "paused", "failed", "ko"]
            level = "error" if chance.random() < 0.05 else "info"
            return of({"status": chance.choice(words), "level": level})
        case "optional keys":
            return of({f"k{n}": 1 for n in range(12) if chance.random() < 0.5} | {"id": 1})
        case "pages of any length":
            return of(b"<p>" + b"x" * int(10 ** chance.uniform(2, 5)), HTML)
        case "a counter as text":
            return of(str(chance.randrange(10**5)).encode(), "text/plain")
        case "a time in a page":
            return of(b"<p>It is %d</p>" % chance.randrange(10**12, 10**13), HTML)
        case _:
            raise ValueError(kind)


KINDS = (
    "ids", "times", "random lists", "random top-level lists", "keys that are ids",
    "keys that are ids, below", "optional keys", "pages of any length", "a counter as text",
    "a time in a page", "optional keys of elements", "words",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("checks", [20, 320])
def test_answers_that_differ_by_right_are_not_told(kind: str, checks: int) -> None:
    raised = 0
    for seed in range(10):
        chance = random.Random(seed)
        sides = ([varying(kind, chance) for _ in range(n)] for n in (checks, 200))
        raised += bool(told(*sides))
    assert raised == 0


def test_an_error_among_answers_whose_keys_are_ids_is_told_by_a_key_that_is_missing() -> None:
    chance = random.Random(1)
    checked = [of({"users": {f"u{chance.random()}": 1}, "n": 1}) for _ in range(20)]
    assert told(checked, [of({"error": "busy"})] * 9 + checked[:1]) == "90% have the key error"


def test_an_error_that_one_user_meets_once_counts_as_checked() -> None:
    assert told([of(RPC)] * 19 + [of(RPC_ERROR)], [of(RPC_ERROR)] * 100) == ""


def test_nothing_is_said_where_nothing_was_checked() -> None:
    assert told([], [of(RPC)] * 100) == ""


def test_long_documents_are_like_those_that_were_read() -> None:
    long = class_of(200, JSON, None, 10**6)
    assert told([of([1])] * 20, [long] * 100) == ""
    assert told([long] * 20, [of(RPC_ERROR)] * 100).startswith("100% have the keys error")


def test_keys_come_back_from_the_recording_as_they_went_in() -> None:
    for answer in (of(RPC), of([RPC]), of(LOGIN, HTML)):
        assert keys_from_text(keys_as_text(answer)) == answer.keys


def test_a_few_answers_that_are_right_keep_the_others_from_being_100_percent() -> None:
    loaded = [Answers(BUSY, 996, "busy"), Answers(GOOD, 4)]
    found = unseen(counted([GOOD] * 20), loaded)
    assert found is not None
    assert found.sentence("new's answers", "none was").startswith("99.6% of new's answers have ")


GOOD, BUSY, CONFLICT = of(RPC), of(RPC_ERROR), of(RPC, status=409)


def share_of(rare: AnswerClass, share: float, number: int) -> list[Answers]:
    return [Answers(GOOD, number * (1 - share)), Answers(rare, number * share, "an example")]


@pytest.mark.promise
@pytest.mark.parametrize(
    ("rare", "words"), [(BUSY, "have the keys error, id, jsonrpc"), (CONFLICT, "have status 409")]
)
def test_a_kind_of_answer_that_rises_under_load_on_one_side_is_told(
    rare: AnswerClass, words: str
) -> None:
    checked, other = share_of(rare, 0.03, 180), share_of(rare, 0.03, 5_000)
    found = risen(checked, share_of(rare, 0.60, 9_000), [other])
    assert found is not None
    assert found.words == f"{words}, 3.0% to one user before, 3.0% elsewhere"
    assert (round(found.share, 2), found.example) == (0.60, "an example")


@pytest.mark.parametrize(
    ("under_load", "elsewhere"),
    [(0.05, 0.03), (0.60, 0.58), (0.009, 0.0)],
    ids=["about as often", "on both sides alike", "hardly ever"],
)
def test_a_kind_of_answer_that_has_not_risen_on_one_side_alone_is_not_told(
    under_load: float, elsewhere: float
) -> None:
    loaded, other = share_of(BUSY, under_load, 9_000), share_of(BUSY, elsewhere, 9_000)
    assert risen(share_of(BUSY, 0.03, 180), loaded, [other]) is None


def test_a_few_answers_that_are_of_a_rare_kind_by_chance_are_not_told() -> None:
    other = share_of(BUSY, 0.0, 27)
    assert risen(share_of(BUSY, 0.02, 180), share_of(BUSY, 5 / 27, 27), [other]) is None
    assert risen(share_of(BUSY, 0.02, 180), share_of(BUSY, 5 / 27, 2_700), [other]) is not None


@pytest.mark.promise
@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (
            {"took": 3, "responses": [{"hits": 1, "n": 2}]},
            {"took": 0, "responses": [{"error": "queue is full", "status": 429}]},
            "have the keys error, status in responses[]",
        ),
        (
            {"code": 0, "message": "success"},
            {"code": 5003, "message": "busy"},
            "have a number in code",
        ),
        (True, False, "are false"),
        ({"id": 1}, None, "are null"),
        (
            {"data": {"viewer": {"repository": {"issues": {"edges": [1, 2]}}}}},
            {"data": {"viewer": {"repository": {"issues": {"edges": []}}}}},
            "have nothing in data.viewer.repository.issues.edges",
        ),
    ],
)
def test_more_ways_to_say_that_a_request_failed(right: Any, wrong: Any, words: str) -> None:
    assert told([of(right)] * 20, [of(wrong)] * 50 + [of(right)] * 50) == f"50% {words}"
    assert told([of(right)] * 20, [of(right)] * 100) == ""


def test_an_answer_of_about_a_checked_size_has_not_risen() -> None:
    before, now = (counted_list([of(b"x" * size)] * 50) for size in (1126, 1129))
    assert risen(before, now, ()) is None


def test_an_element_that_lacks_a_key_is_no_other_answer() -> None:
    whole, part = ({"items": [{"id": 1} | more]} for more in ({"note": "x"}, {}))
    assert told([of(whole)] * 20, [of(whole)] * 90 + [of(part)] * 10) == ""


def test_an_error_is_none_of_the_keys_that_are_data() -> None:
    checked = [of({str(number): {"n": 1}}) for number in range(20)]
    loaded = [of({str(number): {"n": 1}}) for number in range(100, 180)]
    assert told(checked, loaded) == ""
    assert (
        told(checked, loaded + [of({"error": "pool exhausted"})] * 20) == "20% have the key error"
    )


def test_keys_that_some_elements_have_are_no_other_answer() -> None:
    """As where an element of a list has a note, and most have none."""
    items = [{"items": [{"id": 1, "n": 2} | ({"note": "x"} if number % 7 == 0 else {})] * 2}
             for number in range(30, 130)]  # fmt: skip
    assert told([of({"items": [{"id": 1, "n": 2}]})] * 20, [of(item) for item in items]) == ""


def test_packed_answers_are_told_by_their_size() -> None:
    whole, error = (class_of(200, JSON, None, size, is_packed=True) for size in (5_000, 60))
    assert told([whole] * 20, [error] * 100).startswith("100% are 60 bytes in a packing")
    assert told([whole] * 20, [class_of(200, JSON, None, 5_400, is_packed=True)] * 50) == ""


def test_what_was_rare_before_a_load_and_is_most_of_it_is_told_without_another_side() -> None:
    checked = counted_list([of(RPC)] * 19 + [of(RPC_ERROR)])
    loaded = counted_list([of(RPC)] * 10 + [of(RPC_ERROR)] * 990)
    found = risen(checked, loaded, ())
    assert found is not None
    assert found.words == "have the keys error, id, jsonrpc, 5.0% to one user before"
    assert risen(checked, checked, ()) is None


def test_an_empty_list_deep_in_a_document_is_another_answer() -> None:
    full, empty = ({"data": {"search": {"edges": edges}}} for edges in ([{"id": 1}], []))
    assert told([of(full)] * 20, [of(empty)] * 100) == "100% have nothing in data.search.edges"
