"""Typed and validated parameters: every problem is found before anything starts.

An experiment's parameters are a pydantic model derived from :class:`Parameters`. Values may come
as Python objects (a notebook) or as text (``-p key=value``); :func:`check` turns both into the
model or raises one error that lists all problems.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from perflab.errors import ParameterError


class FrozenModel(BaseModel):
    """A frozen model that refuses unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Parameters(FrozenModel):
    """Base of every set of parameters: unknown names are refused, values never change.

    ``true`` for 1 and a level that stands twice in a list are refused, although Python allows them.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _means_something(cls, value: Any, info: ValidationInfo) -> Any:
        annotation = str(cls.model_fields[str(info.field_name)].annotation)
        elements = value if isinstance(value, (list, tuple)) else [value]
        if "bool" not in annotation and any(isinstance(element, bool) for element in elements):
            raise ValueError("true and false mean nothing here")
        return value

    @field_validator("*")
    @classmethod
    def _names_nothing_twice(cls, value: Any) -> Any:
        if isinstance(value, tuple):
            # Names compare as text, because "1" and 1 are one level.
            names = [str(element) for element in value]
            twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            if twice:
                raise ValueError(f"{', '.join(twice)} is named twice; name each level once")
        return value


P = TypeVar("P", bound=Parameters)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest known name, or an empty string."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean '{nearest[0]}'?)" if nearest else ""


def unknown(kind: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return a sentence for each of the names of a kind that is not known."""
    every = list(dict.fromkeys(known))
    listed = ", ".join(every) or "none"
    return [
        f"no {kind} '{name}'{did_you_mean(name, every)}; there are: {listed}"
        for name in names
        if name not in every
    ]


def from_text(text: str) -> Any:
    """Read one value typed on a command line: JSON where it is JSON, else the text itself."""
    lowered = text.strip().lower()
    if lowered in ("none", "null", ""):
        return None
    if lowered in ("true", "false"):
        return lowered == "true"
    try:
        return json.loads(text)
    except ValueError:
        return text


def as_text(value: Any) -> str:
    """Return a value as it is typed on a command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(item, str | int | float) for item in value):
        return ",".join(map(as_text, value))
    return json.dumps(value, default=str)


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Read ``key=value`` words; ParameterError for one without ``=`` or a parameter named twice."""
    values: dict[str, Any] = {}
    problems = []
    for word in assignments:
        name, equals, text = word.partition("=")
        name = name.strip()
        if not equals or not name:
            problems.append(f"'{word}' is not of the form key=value")
        elif name in values:
            problems.append(f"'{name}' is given twice")
        else:
            values[name] = from_text(text)
    if problems:
        raise ParameterError("parameters (-p)", problems)
    return values


def check(
    model: type[P],
    values: Mapping[str, Any],
    subject: str,
    where: Callable[[str], str] = lambda _: "",
) -> P:
    """Validate ``values`` by name against ``model``; ``subject`` names their owner in the error.

    ``where`` gives the words before the problem of a parameter, such as its place in a file.

    A list may be text: JSON, or values separated by commas. ParameterError lists every problem:
    unknown names with the nearest known one, wrong types, values out of range, impossible
    combinations.
    """
    known = list(model.model_fields)
    listed = f"known: {', '.join(known)}"
    problems = [
        f"{where(name)}unknown parameter '{name}'{did_you_mean(name, known)}; {listed}"
        for name in values
        if name not in known
    ]
    known_values = {
        name: _listed(model, name, value) for name, value in values.items() if name in known
    }
    try:
        checked = model.model_validate(known_values)
    except ValidationError as error:
        problems += sentences(error, where)
    if problems:
        raise ParameterError(subject, problems)
    return checked


def _listed(model: type[Parameters], name: str, value: Any) -> Any:
    """Let a list parameter be typed as ``a,b``, as JSON text, or as one value."""
    annotation = model.model_fields[name].annotation
    if "tuple" not in str(annotation) or isinstance(value, (list, tuple)):
        return value
    if value is None and NoneType in get_args(annotation):
        return None
    if value is None or value == "":
        return []
    if isinstance(value, str):
        parsed = from_text(value)
        if isinstance(parsed, list):
            return parsed
        return [from_text(part.strip()) for part in value.split(",")]
    return [value]


def sentences(error: ValidationError, where: Callable[[str], str] = lambda _: "") -> list[str]:
    """Return one sentence for every field that is wrong, with its value and what is allowed.

    pydantic reports every wrong element of a list and every type that it could have been; for the
    user these are one mistake.
    """
    by_field: dict[str, list[Any]] = {}
    for item in error.errors(include_url=False):
        field = str(item["loc"][0]) if item["loc"] else ""
        # A rule about several parameters has no field; each such rule gets its own sentence.
        by_field.setdefault(field or str(item["msg"]), []).append(item)
    return [where(field) + _sentence(items) for field, items in by_field.items()]


# The beginning of a type of error of pydantic, and the kind that was wanted.
KINDS = {
    "int": "a whole number", "float": "a number", "string": "text", "bool": "true or false",
    "tuple": "a list",
}  # fmt: skip
OF_KIND = ("_type", "_parsing", "_from_float", "_parsing_size")


def _sentence(items: list[Any]) -> str:
    first = items[0]
    message = str(first["msg"]).removeprefix("Value error, ")
    kind = KINDS.get(str(first["type"]).partition("_")[0], "")
    if kind and str(first["type"]).endswith(OF_KIND):
        words = [item["ctx"]["expected"] for item in items if item["type"] == "literal_error"]
        message = " or ".join([f"must be {kind}", *words])
    elif first["type"] == "too_short":
        message = message.replace("Tuple should", "must").partition(" after validation")[0]
    if not first["loc"]:
        return message
    same = [item["input"] for item in items if item["msg"] == first["msg"]]
    wrong = ", ".join(dict.fromkeys(map(repr, same)))
    return f"{first['loc'][0]} = {wrong}: {message[:1].lower()}{message[1:]}"
