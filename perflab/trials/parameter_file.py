"""Reads the parameters of a run from a file: a project's ``perflab.toml``, or ``duel.toml``.

Every wrong key of a file is told with its line.
"""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perflab.errors import ParameterError, cause
from perflab.load.body_files import SIGN
from perflab.parameters import did_you_mean
from perflab.project import FILE, TABLES_HERE

VARIANTS, SERVICE, LOAD = "variants", "service", "load"
TABLES = (VARIANTS, SERVICE, LOAD)
# Their entries make one parameter, a list of texts NAME=VALUE.
NEEDS = (SERVICE, "needs")
HEADERS = (LOAD, "headers")
MAPPINGS = ((VARIANTS,), (SERVICE, "env"), NEEDS, HEADERS)
KNOWN = ((SERVICE,), (LOAD,), *MAPPINGS)
# Files that a table names, relative to the file.
FILES = ("header_file", "env_file", "script")
# A project's keys that say how files are started, and the kinds of variants that are files.
OF_FILES, KINDS_OF_FILES = ("command", "prepare"), ("git:", "tree:")
# Those that only variants have which the lab starts, and the kind that it does not start.
OF_STARTED, KIND_OF_OTHERS = (*OF_FILES, "needs", "setup", "env", "env_file"), "url:"
# Keys that are no parameters of a run, but judge it.
GATE = ("fail_on", "strict")
KeyPath = tuple[str, ...]


def read_parameters(path: Path, subject: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of a file, by the names of parameters, and where each stands in the file.

    ``[variants]`` holds NAME = "KIND:WHAT", ``[service]`` the parameters of how variants are
    started and what they need, ``[load]`` those of the load; all may stand at the top as well.
    Relative paths begin at the folder of the file, unless it names another. Tables of a project
    that are not about duels are passed over. ParameterError has every problem, under ``subject``.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(subject, [f"{path}: {cause(error)}"]) from None
    for table in TABLES_HERE if path.name == FILE else ():
        content.pop(table, None)
    lines = {keys: line for keys, line in _lines(text).items() if keys[0] in content}
    places = {keys: f"{path}, line {line}: " for keys, line in lines.items()}
    problems = [
        f"{places[keys]}{'.'.join(keys)} {problem}"
        for keys, value in _leaves(content)
        if (problem := _problem(keys, value, content))
    ]
    if problems:
        raise ParameterError(subject, problems)
    values: dict[str, Any] = {}
    for keys, value in _leaves(content):
        if keys[:-1] in MAPPINGS:
            text = json.dumps(value, default=str) if isinstance(value, Mapping) else value
            sign = ": " if keys[:-1] == HEADERS else "="
            values.setdefault(_parameter(keys), []).append(f"{keys[-1]}{sign}{text}")
        else:
            values[_parameter(keys)] = value
    folder = path.resolve().parent
    if values:
        values["folder"] = str(folder / str(values.get("folder", "")))
    for name in FILES:
        # A script may be a module's as well.
        if name in values and (name != "script" or ".py:" in str(values[name])):
            values[name] = str(folder / str(values[name]))
    requests = values.get("requests")
    for item in (values, *(requests if isinstance(requests, list) else ())):
        if isinstance(item, dict) and str(item.get("body", "")).startswith(SIGN):
            item["body"] = f"{SIGN}{folder / str(item['body'])[1:]}"
    return values, {_parameter(keys): place for keys, place in reversed(places.items())}


def merged(of_file: Mapping[str, Any], given: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the values of a file, and those that were given, which overrule them.

    The command of a project starts files; variants that bring their own have no use for it. What it
    starts has no use where all variants run already.
    """
    kinds = [text.partition("=")[2] for text in {**of_file, **given}.get(VARIANTS, ())]
    unused: tuple[str, ...] = ()
    if file.name == FILE and kinds and not any(each.startswith(KINDS_OF_FILES) for each in kinds):
        is_started = not all(each.startswith(KIND_OF_OTHERS) for each in kinds)
        unused = OF_FILES if is_started else OF_STARTED
    return {name: value for name, value in of_file.items() if name not in unused} | dict(given)


def _parameter(keys: KeyPath) -> str:
    """Return the name of the parameter that a key of a file is, or is a part of."""
    return keys[1] if keys[0] in (SERVICE, LOAD) and len(keys) > 1 else keys[0]


def _problem(keys: KeyPath, value: object, content: Mapping[str, Any]) -> str:
    """Return what is wrong with the kind or place of a key."""
    table, name = keys[0], keys[-1]
    tables = " and ".join([", ".join(f"[{each}]" for each in TABLES[:-1]), f"[{TABLES[-1]}]"])
    if table not in TABLES:
        if len(keys) > 1:
            hint = did_you_mean(table, TABLES)
            return f"is in no table of this file{hint}; tables: {tables}"
    elif len(keys) == 1:
        return f'must be a table: write [{table}], and below it lines like NAME = "..."'
    elif table != VARIANTS and len(keys) == 2 and name in content:
        return f"stands both at the top and in [{table}]"
    elif table == VARIANTS and len(keys) > 2:
        entry = f'"{".".join(keys[1:])}" = {json.dumps(str(value), ensure_ascii=False)}'
        return f"is a table: put a name with dots in quotes ({entry})"
    elif table == VARIANTS and not isinstance(value, str):
        return 'must be text in quotes, like "command:python3 server.py --port {port}"'
    if keys[:-1] in MAPPINGS:
        is_image = keys[:-1] == NEEDS and isinstance(value, Mapping)
        # A program may take "True" otherwise than true.
        is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        return "" if is_image or is_plain else "must be text in quotes"
    if len(keys) > 2:
        return f"is within {'.'.join(keys[:-1])}, which must be text, a number or a list"
    if isinstance(value, Mapping | datetime.date | datetime.time):
        return "must be text, a number or a list"
    return ""


def _leaves(table: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield all values that are no tables, and empty tables but those which the file may have."""
    for name, value in table.items():
        keys = (*above, name)
        if isinstance(value, Mapping) and keys[:-1] != NEEDS and (value or keys in KNOWN):
            yield from _leaves(value, keys)
        else:
            yield keys, value


def _lines(text: str) -> dict[KeyPath, int]:
    """Return the line on which each key begins, by reading the file up to each of its lines."""
    lines: dict[KeyPath, int] = {}
    rows, begin = text.split("\n"), 1
    for end in range(1, len(rows) + 1):
        try:
            known = tomllib.loads("\n".join(rows[:end]))
        except tomllib.TOMLDecodeError:
            continue  # A value goes on on the next line.
        for keys, _ in _leaves(known):
            for length in range(1, len(keys) + 1):
                lines.setdefault(keys[:length], begin)
        begin = end + 1
    return lines
