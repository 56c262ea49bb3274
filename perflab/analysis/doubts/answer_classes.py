"""Classes of answers: what tells one kind of answer from another, whatever its data.

The class of an answer is its status, its media type and, of a JSON object, its keys and the kinds
of their values, down to the sixth level (words and codes that say that something failed are a
kind), with the keys that all elements of a list in it have; of a JSON list, whether it is empty,
and the keys of its elements; of anything else its length.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

# Lengths within this factor of a checked one are alike.
ALIKE = 1.25
# An object with more keys holds data; GraphQL has its lists on the third level.
MOST_KEYS, MOST_LEVELS = 64, 6
MOST_LISTED, LONGEST_EXAMPLE = 8, 80
OBJECT, LIST, EMPTY_LIST, NUMBER = "object", "list", "empty list", "number"
TEXT, LONG, PACKED = "text", "long", "packed"
# Documents that are a word.
WORDS = {True: "true", False: "false", None: "null"}
# Of what has about a size, and nothing else is known.
OF_A_SIZE = (TEXT, PACKED)
# What these members say where a request failed; jobs and orders have other words for themselves.
FAILURE, FAILURES, TOLD_BY = "failure", {"error", "fail"}, {"status", "result"}
# Codes that are 0 unless a request failed; an error is one also where other keys are data.
CODES, ERRORS = {"code", "errcode", "errno", "error_code", "retcode"}, {"error", "errors"}
STATES = {
    "zero": "0", "empty": "nothing", "true": "true", "false": "false", "number": "a number",
    "text": "a text", "list": "a list", "object": "an object", FAILURE: "a word of failure",
}  # fmt: skip
ELEMENT = "[]"


@dataclass(frozen=True)
class AnswerClass:
    """What an answer is like: ``keys`` are (path, state of the value) of a JSON document.

    ``form`` is object, list, empty list, number, text (anything else, whose ``size`` in bytes
    counts), long (JSON that nobody read to its end) or packed (nothing here unpacks it).
    """

    status: int
    media_type: str
    form: str
    keys: tuple[tuple[str, str], ...] = ()
    size: int = 0

    @property
    def group(self) -> tuple[int, str, str]:
        """What must be equal in answers that are alike."""
        return self.status, self.media_type, TEXT if self.form == NUMBER else self.form

    @property
    def coarse(self) -> tuple[object, ...]:
        """Return what tells kinds of answers apart at a glance: outer keys, or about the size."""
        outer = tuple(path for path, _ in self.keys if "." not in path)
        about = round(math.log(self.size + 1) / math.log(ALIKE)) if self.form in OF_A_SIZE else 0
        return *self.group, outer, about


def class_of(
    status: int, content_type: str, body: bytes | None, size: int, is_packed: bool = False
) -> AnswerClass:
    """Return the class of an answer by its unpacked body; None where the body was not kept.

    ``size`` is then that of the body on the wire.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if is_packed:
        return AnswerClass(status, media_type, PACKED, size=size)
    if body is None:
        form = LONG if "json" in media_type else TEXT
        return AnswerClass(status, media_type, form, size=0 if form == LONG else size)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return AnswerClass(status, media_type, TEXT, size=len(body))
    if isinstance(document, dict):
        return AnswerClass(status, media_type, OBJECT, tuple(sorted(_keys(document))))
    if isinstance(document, list):
        objects = (element for element in document if isinstance(element, dict))
        keys = {(f"{ELEMENT}.{key}", "") for element in objects for key in element}
        named = tuple(sorted(keys)) if len(keys) <= MOST_KEYS else ()
        return AnswerClass(status, media_type, LIST if document else EMPTY_LIST, named)
    if document is None or isinstance(document, bool):
        return AnswerClass(status, media_type, WORDS[document])
    is_number = isinstance(document, int | float)
    return AnswerClass(status, media_type, NUMBER if is_number else TEXT, size=len(body))


def _keys(document: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, str]]:
    """Yield paths and states of an object's values, and of the objects in it."""
    if len(document) > MOST_KEYS:
        return
    for key, value in document.items():
        is_failure = key in TOLD_BY and str(value).casefold() in FAILURES
        is_zero = key in CODES | ERRORS and value == 0 and isinstance(value, int)
        yield f"{above}{key}", FAILURE if is_failure else "zero" if is_zero else _state(value)
        if isinstance(value, list) and all(isinstance(element, dict) for element in value):
            alike = set[str]().union(*value[:1]).intersection(*value)
            if len(alike) <= MOST_KEYS:
                yield from ((f"{above}{key}{ELEMENT}.{name}", "") for name in alike)
        if isinstance(value, dict) and above.count(".") < MOST_LEVELS - 1:
            yield from _keys(value, f"{above}{key}.")


def _state(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "number"
    if not value:
        return "empty"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list) else "object"


def example_of(body: str) -> str:
    """Return the begin of a body in one line."""
    text = " ".join(body.split())
    return "".join(sign if sign.isprintable() else " " for sign in text)[:LONGEST_EXAMPLE]


def keys_as_text(answer: AnswerClass) -> str:
    """Return the keys as JSON, as the ``answers`` table holds them."""
    return json.dumps(dict(answer.keys)) if answer.keys else ""


def keys_from_text(text: str) -> tuple[tuple[str, str], ...]:
    """Return the keys that :func:`keys_as_text` has written."""
    return tuple(sorted(json.loads(text).items())) if text else ()


@dataclass(frozen=True)
class Answers:
    """So many answers of one class (a share of them was looked at), with the begin of one."""

    answer: AnswerClass
    number: float
    example: str = ""


def failure_in(answer: AnswerClass) -> str:
    """Return that an answer whose status is a success has an error, as a predicate; or nothing."""
    for path, state in answer.keys:
        if path in ERRORS and state not in ("empty", "zero", "false") and answer.status < 400:
            return f"have {STATES[state]} in {path}"
    return ""


def above_of(path: str) -> str:
    """Return the path of what holds a key."""
    return path.rpartition(".")[0]


def is_of_elements(path: str) -> bool:
    """Tell whether a key is one of all elements of a list within an object."""
    return f"{ELEMENT}." in path[1:]


def is_near(size: int, sizes: Mapping[int, float], but: int = -1) -> bool:
    """Tell whether a size is like one of others; ``but`` is one that does not count."""
    return any(other <= size * ALIKE and size <= other * ALIKE for other in sizes if other != but)


def in_words(answer: AnswerClass, above: str = "") -> str:
    """Return what an answer is, as a predicate."""
    if answer.form in (OBJECT, LIST) and answer.keys:
        above = ELEMENT if answer.form == LIST else above
        names = [path.rpartition(".")[2] for path, _ in answer.keys if above_of(path) == above]
        more = [f"{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
        where = f" in {'elements' if above == ELEMENT else above}" if above else ""
        listed = ", ".join([*names[:MOST_LISTED], *more])
        return f"have the key{'s' * (len(names) != 1)} {listed}{where}" if names else "have no keys"
    if answer.form in WORDS.values():
        return f"are {answer.form}"
    if answer.form in (TEXT, NUMBER):
        return f"have a body of {answer.size:,} bytes" if answer.size else "have an empty body"
    return {
        OBJECT: "are an empty object", LIST: "are a list", EMPTY_LIST: "are an empty list",
        LONG: "are long documents",
        PACKED: f"are {answer.size:,} bytes in a packing that nothing here unpacks",
    }[answer.form]  # fmt: skip
