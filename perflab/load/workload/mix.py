"""Several requests in one load: their names, their shares, and what in them differs each time."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from perflab.load.workload.request import Bodies, Request
from perflab.parameters import FrozenModel

# All other braces stay as they are.
PLACEHOLDER = re.compile(r"\{(?:(uuid|user)|random:(-?\d{1,18})-(-?\d{1,18})|line:([^{}]+))\}")
# What may stand in the target of a request as it is.
PATH_TEXT = re.compile(r"[!-~]*")
# A seeded source of numbers, the number of the user and a place among lines (0 to 1) give a text.
Fill = Callable[[random.Random, int, float], str]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,30}$")]


class Weighted(FrozenModel):
    """A named request, and how often it is sent: ``weight`` over the sum of all weights."""

    name: Name
    weight: float = Field(default=1.0, gt=0, le=1e6)
    request: Request


def has_placeholders(request: Request) -> bool:
    """Return whether something in a request differs each time."""
    return any(PLACEHOLDER.search(text) for text in _texts(request))


def problem_with(request: Request) -> str:
    """Return what is wrong with the placeholders of a request, or an empty string."""
    for text in _texts(request):
        for _, low, high, file in PLACEHOLDER.findall(text):
            if low and int(low) > int(high):
                return f"{{random:{low}-{high}}} has no number: give the smaller one first"
            try:
                if file and not lines_of(file):
                    return f"{{line:{file}}}: the file has no line"
            except (OSError, UnicodeDecodeError) as error:
                return f"{{line:{file}}}: {getattr(error, 'strerror', None) or 'is no text'}"
    return next(filter(None, map(_unfit_for_a_path, PLACEHOLDER.findall(request.path))), "")


def _unfit_for_a_path(placeholder: tuple[str, ...]) -> str:
    """Return which line of a placeholder's file cannot stand in a path; empty without one."""
    file = placeholder[-1]
    lines = Path(file).read_text(encoding="utf-8").splitlines() if file else ()
    for number, line in enumerate(lines, start=1):
        if not PATH_TEXT.fullmatch(line):
            return (
                f"{{line:{file}}}: line {number} holds a blank or a letter beyond ASCII, which no "
                "path has: percent-encode it"
            )
    return ""


def filled(request: Request, numbers: random.Random, user: int) -> Request:
    """Return a request with values for its placeholders.

    Equal ``numbers`` give equal values, but for UUIDs, which are never equal.
    """
    fill = fill_of(request)
    path, headers, body = fill(numbers, user)
    return request.model_copy(update={"path": path, "headers": headers, "body": body})


def fill_of(request: Request) -> Callable[[random.Random, int], tuple[str, dict[str, str], Bodies]]:
    """Return what gives path, headers and body of a request their values; bytes have none.

    All lines of a request stand at the same place in their files.
    """
    path, fixed = _compiled(request.path), request.body
    body = _compiled(fixed) if isinstance(fixed, str) else lambda *_: fixed
    headers = {name: _compiled(text) for name, text in request.headers.items()}
    has_lines = any(match[4] for text in _texts(request) for match in PLACEHOLDER.finditer(text))

    def fill(numbers: random.Random, user: int) -> tuple[str, dict[str, str], Bodies]:
        place = numbers.random() if has_lines else 0.0
        of_headers = {name: text(numbers, user, place) for name, text in headers.items()}
        return path(numbers, user, place), of_headers, body(numbers, user, place)

    return fill


def _texts(request: Request) -> list[str]:
    body = request.body if isinstance(request.body, str) else ""
    return [request.path, *request.headers.values(), body]


def _compiled(text: str) -> Fill:
    parts: list[str | Fill] = []
    begin = 0
    for match in PLACEHOLDER.finditer(text):
        parts += [text[begin : match.start()], _value(*match.groups())]
        begin = match.end()
    if not parts:
        return lambda *_: text
    parts.append(text[begin:])
    return lambda numbers, user, place: "".join(
        part if isinstance(part, str) else part(numbers, user, place) for part in parts
    )


def _value(word: str | None, low: str | None, high: str | None, file: str | None) -> Fill:
    if word == "user":
        return lambda _numbers, user, _place: str(user)
    if word == "uuid":
        # It may be a key: no load repeats those of another that met the same store.
        return lambda *_: str(uuid.uuid4())
    if file is not None:
        lines = lines_of(file)
        return lambda _numbers, _user, place: lines[int(place * len(lines))]
    first, last = int(low or 0), int(high or 0)
    return lambda numbers, *_: str(numbers.randint(first, last))


@lru_cache
def lines_of(file: str) -> tuple[str, ...]:
    """Return the lines of a file of text that are not empty."""
    return tuple(filter(None, Path(file).read_text(encoding="utf-8").splitlines()))
