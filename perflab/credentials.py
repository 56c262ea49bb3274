"""Credentials: values that are used, and never written or shown.

In parameters, plans and records a credential stands as a reference, ``{env:NAME}``. Its value is
one of the caller's environment, or one that was given as a literal and is kept here, in the memory
of this process. Values go to other processes by pipes and environments. References are filled in
where a request is sent and where a process is started, and nowhere before.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote

REFERENCE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
# A password may hold ? and # as they are; a port, or what stands for one, is none.
USER_AND_PASSWORD = re.compile(
    r"(?<=://)((?:\{env:\w+\}|\{[a-z][a-z0-9_.]*\}|[^\s/?#@:'\"{[])*)"
    r":([^\s/?#'\"]+|(?!\d{1,5}[,?#]|[{$])[^\s/'\"]+)@"
)
SCHEMES = r"(?i:basic|bearer|digest|token|apikey|negotiate)\s+"
SCHEME = re.compile(rf"{SCHEMES}(\S.*)")
CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# A shorter value stands in too many words that have nothing to do with it.
LEAST_MASKED = 4
# A value of so many letters is masked within words, too, and is taken for a cookie's secret.
LEAST_WITHIN_WORDS = 8
_kept: dict[str, str] = {}
# By the name of their place, the names of the values that were kept from there.
_names: dict[str, dict[str, str]] = {}
# The values that were given or looked up in this process, with the names that are shown for them.
_known: dict[str, str] = {}
# The names of values that are recorded nowhere, and are no secrets: those of a service's variables.
_plain: set[str] = set()


def reference(name: str) -> str:
    """Return the reference to a variable."""
    return f"{{env:{name}}}"


def keep(value: str, name: str, is_plain: bool = False) -> str:
    """Keep a literal in memory, and return the reference that stands for it from now on.

    It is named by its place, such as a header; another value of that name gets a number. One that
    is plain is not masked.
    """
    stem = re.sub(r"\W+", "_", name).strip("_").upper()
    stem = f"_{stem}" if not stem or stem[0].isdigit() else stem
    names = _names.setdefault(stem, {})
    chosen, number = names.get(value, stem), max(1, len(names))
    while value_of(chosen) not in (None, value):
        number += 1
        chosen = f"{stem}_{number}"
    names[value] = chosen
    call_plain(chosen, is_plain)
    _kept[chosen] = _known_as(value, chosen)
    return reference(chosen)


def call_plain(name: str, is_plain: bool) -> None:
    """Note whether a value is no secret, and so is not masked."""
    (_plain.add if is_plain else _plain.discard)(name)


def plain_names() -> tuple[str, ...]:
    """Return the names of values that are not masked."""
    return tuple(sorted(_plain))


def take(values: Mapping[str, str], plain: Iterable[str] = ()) -> None:
    """Keep the values that another process has looked up, by name; ``plain`` are no secrets."""
    _plain.update(plain)
    for name, value in values.items():
        _kept[name] = _known_as(value, name)


def kept() -> dict[str, str]:
    """Return the literals that this process keeps, by name."""
    return dict(_kept)


def names_in(text: str) -> list[str]:
    """Return the names of the references in a text."""
    return list(dict.fromkeys(REFERENCE.findall(text)))


def look_up(names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the values of references by name, and a clause for each that cannot be used."""
    values, problems = {}, []
    for name in names:
        value = value_of(name)
        if value is None:
            problems.append(f"the environment variable {name} is not set")
        elif CONTROLS.search(value):
            problems.append(f"the environment variable {name} holds a line break or a control")
        else:
            values[name] = _known_as(value, name)
    return values, problems


def filled_in(text: str) -> str:
    """Return a text with the values of its references; one without a value stays."""

    def value(match: re.Match[str]) -> str:
        found = value_of(match[1])
        return match[0] if found is None else _known_as(found, match[1])

    return REFERENCE.sub(value, text)


def stand_in(given: Any, recorded: Any) -> bool:
    """Return whether values differ only in the names of references.

    Then the recorded names stand for the values of the given ones from now on.
    """
    texts = json.dumps(given, default=str), json.dumps(recorded, default=str)
    first, second = (REFERENCE.sub("{env:}", text) for text in texts)
    if first != second:
        return False
    pairs = zip(*(REFERENCE.findall(text) for text in (texts[1], texts[0])), strict=True)
    take({old: value for old, new in pairs if (value := value_of(new)) is not None})
    return True


def masked(text: str) -> str:
    """Return a text in which references stand for all values that this process knows."""
    for value in sorted(_known, key=len, reverse=True):
        if len(value) >= LEAST_WITHIN_WORDS:
            text = text.replace(value, reference(_known[value]))
        elif value in text:
            whole = rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])"
            text = re.sub(whole, reference(_known[value]), text)
    return text


def masked_within(value: Any) -> Any:
    """Return a document whose texts are masked; its keys and numbers stay."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {key: masked_within(each) for key, each in value.items()}
    return [masked_within(each) for each in value] if isinstance(value, list) else value


def value_of(name: str) -> str | None:
    """Return the value of a reference; None where it has none."""
    return _kept.get(name, os.environ.get(name))


def _known_as(value: str, name: str) -> str:
    """Return a value; note it with all of its forms, unless it is plain or short."""
    if name in _plain or len(value) < LEAST_MASKED:
        return value
    for form in _forms(value):
        if len(form) >= LEAST_MASKED:
            _known.setdefault(form, name)
    # A name whose whole value it is stands for it, and not one of which it is a part.
    if value_of(_known[value]) != value:
        _known[value] = name
    return value


def _forms(value: str) -> Iterator[str]:
    """Yield the secret parts of a value, and other spellings of them."""
    parts = [value]
    if scheme := SCHEME.fullmatch(value):
        parts.append(scheme[1])
        try:
            decoded = base64.b64decode(scheme[1], validate=True).decode()
            parts += [decoded, decoded.partition(":")[2]]
        except (binascii.Error, UnicodeDecodeError):
            pass
    parts += [password for _, password in USER_AND_PASSWORD.findall(value)]
    if re.match(r"[\w.-]+=", value):
        # A cookie: names and values.
        pairs = [pair.partition("=")[2].strip() for pair in value.split(";")]
        parts += [text for text in pairs if len(text) >= LEAST_WITHIN_WORDS]
    for part in parts:
        yield part
        quoted = quote(part, safe="", errors="surrogateescape")
        written = json.dumps(part)[1:-1]
        yield from (quoted, unquote(part), written, html.escape(part))
        # Some programs write escapes in small letters.
        yield re.sub("%..", lambda code: code[0].lower(), quoted)
        yield base64.b64encode(part.encode(errors="surrogateescape")).decode()
        # As Go writes JSON.
        yield written.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "&<>"})
        with suppress(ValueError):
            # As a shell reads it.
            yield "".join(shlex.split(part))
