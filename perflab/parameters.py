"""Typed and validated parameters: every problem is found before anything starts.

An experiment's parameters are a pydantic model derived from :class:`Parameters`. Values may come
as Python objects (a notebook) or as text (``-p key=value``, a sweep file); :func:`check` turns both
into the model, each value into the one form that its type has, or raises one error that lists all
problems.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from perflab.errors import ParameterError

# Elements that need no quotes between commas.
PLAIN = re.compile(r"[\w.+-]+")
NOTHING = ("", "none", "null")
# The name of an entry that has a value behind it.
NAMED = re.compile(r"([^\s=:]+)[\s=:]+[^\s=:]")
# Parameters whose values may hold credentials.
OF_CREDENTIALS = ("headers", "env")
# The beginning of a type of error of pydantic, and the kind that was wanted.
KINDS = {
    "int": "a whole number", "float": "a number", "string": "text", "bool": "true or false",
    "tuple": "a list",
}  # fmt: skip
OF_KIND = ("_type", "_parsing", "_from_float", "_parsing_size")
# What other types of errors ask for.
WANTED = {
    "greater_than": "must be above {gt}", "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt}", "less_than_equal": "must be {le} or less",
    "literal_error": "must be {expected}", "enum": "must be {expected}",
    "finite_number": "must be a finite number",
}  # fmt: skip


class FrozenModel(BaseModel):
    """A frozen model that refuses unknown names; its errors do not repeat values of themselves."""

    # A part of a credential would not be masked.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Parameters(FrozenModel):
    """Base of every set of parameters: unknown names are refused, values never change.

    ``true`` for 1 and a level that stands twice in a list are refused, although Python allows them.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _means_something(cls, value: Any, info: ValidationInfo) -> Any:
        """Return a number as a list of one where a list is asked: ``workers=4``."""
        annotation = cls.model_fields[str(info.field_name)].annotation
        elements = value if isinstance(value, (list, tuple)) else [value]
        if "bool" not in str(annotation) and any(isinstance(each, bool) for each in elements):
            raise ValueError("true and false mean nothing here")
        is_number = isinstance(value, int | float)
        return (value,) if is_number and _element_of(annotation) is not None else value

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


P = TypeVar("P", bound=BaseModel)


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


class Whole:
    """Marks a list whose elements may hold commas: text for it is one element.

    Only words without any other mark, such as names, are elements between commas.
    """


def from_text(annotation: Any, text: str, whole: bool = False) -> Any:
    """Read text by the type of its parameter; what cannot be read is left as it is.

    Text stays text. A list is JSON, or elements separated by commas, unless it is ``whole``.
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return from_text(args[0], text, whole)
    if origin in (Union, UnionType):
        if NoneType in args and text.strip().lower() in NOTHING:
            return None
        readings = [from_text(item, text, whole) for item in args if item is not NoneType]
        return next((item for item in readings if not isinstance(item, str)), text)
    if origin is tuple:
        if text.lstrip().startswith("["):
            return _from_json(text)
        parts = [part.strip() for part in text.split(",")]
        if whole and not all(map(PLAIN.fullmatch, parts)):
            parts = [text]
        return [from_text(args[0], part) for part in parts] if text else []
    # "1" is no level where 1 is one.
    if annotation is str or origin is Literal:
        return text
    return _from_json(text.strip().lower() if annotation is bool else text)


def _from_json(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    # What is too large for a number is no number: 12e345.
    return text if value in (math.inf, -math.inf) else value


def as_text(value: Any) -> str:
    """Return a value as it is typed on a command line; :func:`from_text` reads the same again."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and value:
        texts = [item if isinstance(item, str) else json.dumps(item) for item in value]
        if all(map(PLAIN.fullmatch, texts)):
            return ",".join(texts)
    return json.dumps(value, default=str) if value not in ((), []) else ""


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Return the texts of ``key=value`` words by key.

    ParameterError for one without ``=`` or a parameter named twice.
    """
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
            values[name] = text
    if problems:
        raise ParameterError("parameters (-p)", problems)
    return values


def check(
    model: type[P],
    values: Mapping[str, Any],
    subject: str,
    where: Callable[[str], str] = lambda _: "",
    flag: Callable[[str], str] = lambda _: "",
) -> P:
    """Validate ``values`` by name against ``model``; ``subject`` names their owner in the error.

    ``where`` gives the words before the problem of a parameter, such as its place in a file, and
    ``flag`` the option by which its value was given, if it was.

    Text is read by the type of its parameter (:func:`from_text`). ParameterError lists every
    problem: unknown names with the nearest known one, wrong types, values out of range, impossible
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
        name: _typed(model.model_fields[name], value)
        for name, value in values.items()
        if name in known
    }
    try:
        checked = model.model_validate(known_values)
    except ValidationError as error:
        problems += sentences(error, where, flag)
    if problems:
        raise ParameterError(subject, problems)
    return checked


def _typed(field: FieldInfo, value: Any) -> Any:
    """Return a value in the form of its parameter's type, where it can have that."""
    if isinstance(value, str):
        is_whole = any(isinstance(item, Whole) for item in field.metadata)
        value = from_text(field.annotation, value, is_whole)
    element = _element_of(field.annotation)
    if element is None or isinstance(value, str):
        return value
    if value is None:
        return None if NoneType in get_args(field.annotation) else []
    return [
        _level(element, item) for item in (value if isinstance(value, list | tuple) else [value])
    ]


def _element_of(annotation: Any) -> Any:
    """Return the type of a list's elements; None for what is no list."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return args[0]
    nested = map(_element_of, args) if origin in (Annotated, Union, UnionType) else ()
    return next((item for item in nested if item is not None), None)


def _level(element: Any, value: Any) -> Any:
    """Return an element of a list; a number that stands for a level of text is that text."""
    if isinstance(value, str):
        return from_text(element, value)
    levels = get_args(element) if get_origin(element) is Literal else ()
    return str(value) if value not in levels and str(value) in levels else value


def sentences(
    error: ValidationError,
    where: Callable[[str], str] = lambda _: "",
    flag: Callable[[str], str] = lambda _: "",
) -> list[str]:
    """Return one sentence for every field that is wrong, with its value and what is allowed.

    pydantic reports every wrong element of a list and every type that it could have been; for the
    user these are one mistake.
    """
    by_field: dict[str, list[Any]] = {}
    for item in error.errors(include_url=False):
        field = str(item["loc"][0]) if item["loc"] else ""
        # A rule about several parameters has no field; each such rule gets its own sentences.
        by_field.setdefault(field or str(item["msg"]), []).append(item)
    return [
        # The sentence of a rule may begin with the name of one of its parameters.
        where(str(items[0]["loc"][0]) if items[0]["loc"] else re.split("[ :]", sentence)[0])
        + sentence
        for field, items in by_field.items()
        for sentence in _sentence(items, flag(field)).split("\n")
    ]


def message_of(problem: Any) -> str:
    """Return what is wrong with a value (an error of pydantic), without the value."""
    of_type = str(problem["type"])
    kind = KINDS.get(of_type.partition("_")[0], "")
    if kind and of_type.endswith(OF_KIND):
        return f"must be {kind}"
    if of_type in WANTED:
        limits = problem.get("ctx", {}).items()
        return WANTED[of_type].format(**{key: str(x).removesuffix(".0") for key, x in limits})
    message = str(problem["msg"]).removeprefix("Value error, ")
    if of_type == "too_short":
        return message.replace("Tuple should", "must").partition(" after validation")[0]
    return message


def entry_of(problem: Any) -> str:
    """Return the name of a wrong entry like NAME=VALUE in a list, or its number; never its value.

    Without a value behind it, what looks like a name may be the value.
    """
    number = problem["loc"][-1]
    if not isinstance(number, int):
        return "..."
    match = NAMED.match(str(problem["input"]))
    return f"'{match[1]}...'" if match else f"entry {number + 1}"


def _sentence(items: list[Any], flag: str) -> str:
    """Return what is wrong with one parameter; the value of a list stays on the command line."""
    first = items[0]
    message = message_of(first)
    if message == "must be text" and not flag:
        message += "; write it in quotes (papermill: -r NAME VALUE)"
    elif message in (f"must be {kind}" for kind in KINDS.values()):
        words = [item["ctx"]["expected"] for item in items if item["type"] == "literal_error"]
        message = " or ".join([message, *words])
    if not first["loc"]:
        return message
    same = [item for item in items if item["msg"] == first["msg"]]
    # What is not of the right form may be a credential that was mistyped.
    is_secret = first["loc"][0] in OF_CREDENTIALS
    wrong = ", ".join(
        dict.fromkeys(entry_of(item) if is_secret else repr(item["input"]) for item in same)
    )
    if flag:
        return f"{flag}{'' if isinstance(first['input'], list) else f' {wrong}'}: {message}"
    return f"{first['loc'][0]} = {wrong}: {message[:1].lower()}{message[1:]}"
