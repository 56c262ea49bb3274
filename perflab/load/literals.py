"""Finds credentials that are given as literals, and leaves references to them in their places.

All that is behind this door, such as parameters, plans and records, holds references only.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from perflab.credentials import (
    REFERENCE,
    SCHEME,
    USER_AND_PASSWORD,
    call_plain,
    keep,
    masked,
    names_in,
    value_of,
)
from perflab.load.address_secrets import target, without_passwords
from perflab.load.body_files import with_text
from perflab.load.body_secrets import body
from perflab.load.secret_names import (
    NAMES,
    NARROW_NAMES,
    PLACEHOLDER,
    WHOLE_REFERENCE,
    Names,
    kept,
    kept_in_command,
    named,
    plain,
)

ASSIGNMENT = re.compile(
    r"""(?<![\w.-])(-{0,2}([A-Za-z_][\w.-]*)=)((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;|&])+)"""
)
OPTION = re.compile(r"--?([A-Za-z][\w.-]*)")
SHELL_OPTION = re.compile(
    r"""((?<!\S)--?([A-Za-z][\w.-]*)\s+)('[^']*'|"(?:\\.|[^"\\])*"|[^\s'"\\;|&$-][^\s'"\\;|&]*)"""
)
# As curl takes it.
HEADER = re.compile(r"[A-Za-z][\w-]*:\s+\S.*")
QUOTED_HEADER = re.compile(r"""(['"])([A-Za-z][\w-]*:\s+(?:(?!\1).)+)\1""")
# A header without a blank is one only behind its option: others are a program's own words.
CLOSE_HEADER = re.compile(
    r"(?P<head>(?<!\S)(?:-H\s*|--header(?:\s+|=))(?P<name>[A-Za-z][\w-]*):)(?P<value>[^\s'\"]+)"
)
CLOSE = re.compile(r"([A-Za-z][\w-]*):(\S+)")
QUOTED_DOCUMENT = re.compile(r"(?<=')\s*[{\[<][^']*(?=')")
# A user and a password, as curl takes them; other programs mean other things by this option.
USER_OPTION = re.compile(
    r"(\bcurl\b[^;|&\n]{0,500}?\s(?:-u\s*|--user(?:\s+|=)))(['\"]?[^\s:'\"$]+:)((?!\$|//)[^\s'\"]+)"
)
DOCUMENT = ("{", "[", "<")
BARE = re.compile(r"[\w@%+=:,./{}-]+")
ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*", re.S)
# A variable that has the caller's value, or that of a file.
PASSED_ON = re.compile(r"(?i)(\w+)(?:=\{env:(\1(?:_\d+)?)\})?")
# What is shorter stands in too many texts; a password is seldom one word of small letters.
ORDINARY = re.compile(r".{0,7}|[a-z]{1,12}", re.S)
SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
EXPECTED = "expect_body"
LISTS = ("headers", "variants", "env", "needs")


def header(text: str, names: Names) -> str:
    """Return ``Name: value``; ``env:NAME`` as a value is a reference."""
    name, colon, rest = text.partition(":")
    value = rest.strip()
    is_one = names.has(name) or WHOLE_REFERENCE.fullmatch(value) or SCHEME.fullmatch(value)
    if not (colon and value):
        return text
    return f"{name}: {kept(value, name)}" if is_one else target(text, names)


def command(text: str, names: Names) -> str:
    """Return a command that runs without a shell: ``NAME=value``, ``--name value``, addresses."""
    try:
        words = shlex.split(text)
    except ValueError:
        return shell(text, names)
    if words and Path(words[0]).name == "curl":
        return shell(text, names)
    pairs = zip(words, ["", *words], strict=False)
    changed = [_word(word, before, names) for word, before in pairs]
    if changed == words:
        return text
    return " ".join(word if BARE.fullmatch(word) else shlex.quote(word) for word in changed)


def _word(word: str, before: str, names: Names) -> str:
    option = OPTION.fullmatch(before)
    if option and not word.startswith("-") and names.has(option[1], NARROW_NAMES):
        return kept_in_command(word, option[1])
    name, equals, value = word.partition("=")
    stem = name.lstrip("-")
    if equals and SECRET_NAME.fullmatch(stem):
        pattern = NARROW_NAMES if name.startswith("-") else NAMES
        has_password = USER_AND_PASSWORD.search(value) and not PLACEHOLDER.search(value)
        if value and (names.has(stem, pattern) or has_password):
            return f"{name}={kept_in_command(value, stem)}"
        if (shown := variable_value(value, names)) != value:
            return f"{name}={shown}"
    if word.lstrip().startswith(("{", "[")):
        return body(word, names, kept_in_command)
    if before in ("-H", "--header") and (close := CLOSE.fullmatch(word)) and names.has(close[1]):
        return f"{close[1]}:{kept_in_command(close[2], close[1])}"
    if HEADER.fullmatch(word):
        return header(word, names)
    # A script for a shell, or words such as those that name a database to libpq.
    return shell(word, names) if any(map(str.isspace, word)) else target(word, names)


def shell(text: str, names: Names) -> str:
    """Return a text for a shell: assignments, options, headers, and addresses with a password."""

    def given(match: re.Match[str]) -> str:
        pattern = NARROW_NAMES if match[1].startswith("-") else NAMES
        is_one = names.has(match[2], pattern) and not match[3].strip("\"'").startswith("$")
        return match[1] + kept_in_command(match[3], match[2]) if is_one else match[0]

    def quoted(match: re.Match[str]) -> str:
        return match[1] + header(match[2], names) + match[1]

    def of_user(match: re.Match[str]) -> str:
        return f"{match[1]}{match[2]}{kept_in_command(match[3], 'USER_PASSWORD')}"

    text = QUOTED_DOCUMENT.sub(lambda match: body(match[0], names, kept_in_command), text)
    text = USER_OPTION.sub(of_user, QUOTED_HEADER.sub(quoted, text))
    text = SHELL_OPTION.sub(given, ASSIGNMENT.sub(given, text))
    return named(target(text, names), names, CLOSE_HEADER)


def variable(text: str, names: Names) -> str:
    """Return ``NAME=value`` of an environment; a name alone stands for the caller's variable."""
    name, equals, value = text.partition("=")
    if not value:
        return text
    is_one = names.has(name)
    shown = kept_in_command(value, name) if is_one else variable_value(value, names)
    return f"{name}{equals}{shown}"


def variable_value(text: str, names: Names) -> str:
    """Return a value that is a document, such as JSON, or words as for a shell."""
    is_document = text.lstrip().startswith(DOCUMENT) and not PLACEHOLDER.match(text.lstrip())
    return body(text, names, kept_in_command) if is_document else shell(text, names)


def need(text: str, names: Names) -> str:
    """Return what a service needs, ``NAME=KIND``; that of an image has variables, as JSON."""
    name, equals, rest = text.partition("=")
    try:
        given = json.loads(rest)
        pairs = {key: str(value) for key, value in given.get("env", {}).items()}
    except (ValueError, AttributeError):
        return f"{name}{equals}{body(without_passwords(rest), names)}"
    shown = {
        key: variable(f"{key}={value}", names).partition("=")[2] for key, value in pairs.items()
    }
    changed = {key: value for key, value in shown.items() if value != pairs[key]}
    text = json.dumps({**given, "env": {**given["env"], **changed}}) if changed else rest
    return f"{name}{equals}{body(text, names)}"


def variant(text: str, names: Names) -> str:
    """Return a variant, ``NAME=KIND:WHAT``."""
    name, equals, rest = text.partition("=")
    kind, colon, place = rest.partition(":")
    forms = {"command": command, "url": target}
    form = forms.get(kind, lambda text, _: without_passwords(text))
    return f"{name}{equals}{kind}{colon}{form(place, names)}"


Form = Callable[[str, Names], str]
# The parameters that may hold credentials.
FORMS: Mapping[str, Form] = {
    "headers": header, "variants": variant, "command": command, "prepare": shell, "path": target,
    "url": target, "health": target, "body": body, "env": variable, "setup": command,
    "needs": need,
}  # fmt: skip


def by_reference(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters whose credentials are references, with those of their files.

    Text that is not yet split into a list stays as it is. Raises ValueError for a file that cannot
    be read, and for an entry of ``secret`` that is no name in these parameters.
    """
    changed = dict(values)
    more = _texts_of(values.get("secret"))
    names = Names(more)
    if file := changed.get("header_file"):
        headers = [*_texts_of(changed.get("headers")), *_of_file(Path(str(file)))]
        changed |= {"header_file": "", "headers": headers}
    if file := changed.get("env_file"):
        given = _texts_of(changed.get("env"))
        own = {text.partition("=")[0] for text in given}
        of_file = [
            text for text in _variables(Path(str(file)), names) if text.partition("=")[0] not in own
        ]
        changed |= {"env_file": "", "env": [*given, *of_file]}
    changed = _with_references(changed, names)
    if isinstance(requests := changed.get("requests"), list | tuple):
        changed["requests"] = [
            _with_references(item, names) if isinstance(item, Mapping) else item
            for item in requests
        ]
    _call_plain(changed, names)
    names.met |= {plain(text.partition("=")[0]) for text in _texts_of(changed.get("env"))}
    for number, name in enumerate(more, start=1):
        if plain(name) not in names.met:
            raise ValueError(
                f"secret: entry {number} is not the name of a header, a variable, an option or a "
                "query parameter that is given; it takes names, and no values"
            )
    return changed


def _call_plain(values: Mapping[str, Any], names: Names) -> None:
    """Note which variables of services are no secrets: nothing else refers to them, either."""
    passed: dict[str, str] = {}
    others = []
    for text in _texts_of(values.get("env")):
        if match := PASSED_ON.fullmatch(text):
            passed[match[2] or match[1]] = match[1]
        else:
            others.append(text)
    used = names_in(json.dumps({**values, "env": others}, default=str))
    for name, variable in passed.items():
        value = value_of(name)
        is_plain = value is not None and name not in used and _is_plain(variable, value, names)
        call_plain(name, is_plain)


def _is_plain(name: str, value: str, names: Names) -> bool:
    """Return whether a variable is no secret, by its name and by a value that is a mere word."""
    is_secret = names.has(name) or NAMES.search(plain(value))
    return bool(ORDINARY.fullmatch(value)) and not is_secret


def _with_references(values: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Return parameters, or one of several requests, whose credentials are references."""
    changed = dict(values)
    if isinstance(text := changed.get("body"), str):
        changed["body"] = with_text(text)
    for parameter, form in FORMS.items():
        value = changed.get(parameter)
        if isinstance(value, str) and parameter not in LISTS:
            changed[parameter] = form(value, names)
        elif isinstance(value, list | tuple):
            changed[parameter] = [
                form(item, names) if isinstance(item, str) else item for item in value
            ]
        elif isinstance(value, Mapping) and parameter == "headers":
            texts = [form(f"{name}: {text}", names) for name, text in value.items()]
            pairs = (text.partition(":") for text in texts)
            changed[parameter] = {name: text.strip() for name, _, text in pairs}
    return _expecting(changed)


def _expecting(values: dict[str, Any]) -> dict[str, Any]:
    """Return values in which a text that answers must hold is a reference, if it has a credential.

    All other credentials are known by now.
    """
    text = values.get(EXPECTED)
    if isinstance(text, str) and not REFERENCE.search(text) and masked(text) != text:
        return {**values, EXPECTED: keep(text, EXPECTED)}
    return values


def _texts_of(value: Any) -> list[str]:
    return [value] if isinstance(value, str) and value else [*map(str, value or ())]


def _of_file(file: Path) -> list[str]:
    """Return the headers of a file, all by reference."""
    headers = []
    for number, line in _lines("header_file", file):
        name, colon, value = line.partition(":")
        if not (colon and name.strip() and value.strip()):
            raise ValueError(
                f"header_file {file.name}, line {number}: it is not like 'Name: value'"
            )
        headers.append(f"{name.strip()}: {kept(value.strip(), name)}")
    return headers


def _variables(file: Path, names: Names) -> list[str]:
    """Return the variables of a file of lines ``NAME=value``, as a shell reads it, by reference."""
    texts = []
    for number, line in _lines("env_file", file):
        try:
            words = [word for word in _words_before_a_comment(line) if word != "export"]
        except ValueError:
            words = []
        if len(words) != 1 or not ASSIGNED.fullmatch(words[0]):
            raise ValueError(f"env_file {file.name}, line {number}: it is not like 'NAME=value'")
        name, _, value = words[0].partition("=")
        shown = keep(value, name, _is_plain(name, value, names)) if value else ""
        texts.append(f"{name}={shown}")
    return texts


def _words_before_a_comment(line: str) -> list[str]:
    """Return the words of a line; as in a shell, a sign # within a word begins no comment."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    return list(takewhile(lambda word: not word.startswith("#"), lexer))


def _lines(parameter: str, file: Path) -> list[tuple[int, str]]:
    """Return the lines of a file that say something, with their numbers."""
    try:
        lines = file.expanduser().read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "is no text in UTF-8"
        raise ValueError(f"{parameter} {file.name}: {problem}") from None
    return [
        (number, line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
