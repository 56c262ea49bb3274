"""What a duel is given: by options, and by ``duel.toml`` or the project's ``perflab.toml``.

Every wrong key of a file is told with its line.
"""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import create_model

from perflab import systems
from perflab.cli.duel_blocks import with_enough_blocks
from perflab.errors import ParameterError, cause
from perflab.load.body_files import SIGN
from perflab.parameters import check, did_you_mean, unknown
from perflab.project import FILE, OF_A_PROJECT, project_file

SUBJECT = "perflab duel"
VARIANTS, SERVICE, LOAD = "variants", "service", "load"
TABLES = (VARIANTS, SERVICE, LOAD)
# Their entries make one parameter, a list of texts NAME=VALUE.
MAPPINGS = ((VARIANTS,), (SERVICE, "env"), (SERVICE, "needs"))
KNOWN = ((SERVICE,), (LOAD,), *MAPPINGS)
# Files that a table names, relative to the file.
FILES = ("header_file", "env_file", "script")
OF_TREES = ("command", "prepare")
# The options of parameters that have other names.
FLAGS = {"variants": "variant", "headers": "header", "allow_targets": "allow_target"}
KeyPath = tuple[str, ...]


def given(
    experiment: str, file: str, options: dict[str, Any], run: str, fail_on: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str], bool]:
    """Return the parameters, thresholds and strictness of a file and of options that overrule it.

    Without a file it is the project's ``perflab.toml``, if that has a service or a load. The
    thresholds of ``fail_on`` are added to those of the file, and a new run has enough blocks for
    all (:mod:`perflab.cli.duel_blocks`).

    Of a ``run`` that is to be finished, the other parameters are not checked here: it has its own.
    Raises ParameterError with every problem.
    """
    found = Path(file) if file else None if run else project_file()
    of_file, places = read_duel(found) if found else ({}, {})
    values = {**of_file, **options}
    if not file and not any(_is_tree(text) for text in values.get(VARIANTS, ("=git:",))):
        # The project's command starts files; variants that bring their own have no use for it.
        values = {name: value for name, value in values.items() if name not in OF_TREES}
    if run:
        values.pop("folder", None)
    elif VARIANTS not in values and "against" not in values:
        problem = (
            "there are no variants: give --against REVISION, two --variant NAME=KIND:WHAT, or a "
            "file"
        )
        raise ParameterError(SUBJECT, [problem])
    else:
        values.setdefault("folder", str(Path.cwd()))
    gate: Any = {"fail_on": (tuple[str, ...], ()), "strict": (bool, False)}
    base = systems.experiment(experiment).parameters
    checked: Any = check(
        create_model("DuelParameters", __base__=base, **gate),
        {name: value for name, value in values.items() if name in gate or not run},
        SUBJECT,
        lambda name: "" if name in options else places.get(name, ""),
        lambda name: _flag(name) if name in options else "",
    )
    of_run = {name: value for name, value in values.items() if name not in gate}
    bounds = [*checked.fail_on, *fail_on]
    if run:
        return of_run | {"resume": run}, bounds, checked.strict
    _refuse_unknown_requests(bounds, checked.request_names)
    of_all_pairs = len(bounds) * (len(checked.variants) - 1)
    return with_enough_blocks(of_run, checked, of_all_pairs, SUBJECT), bounds, checked.strict


def _flag(name: str) -> str:
    """Return the option of a parameter."""
    return f"--{FLAGS.get(name, name).removesuffix('_s').replace('_', '-')}"


def _refuse_unknown_requests(bounds: Sequence[str], names: Sequence[str]) -> None:
    """Raise ParameterError for thresholds on requests that the load does not have."""
    asked = [bound.rpartition(":")[0].strip() for bound in bounds if ":" in bound]
    if problems := unknown("request", asked, names):
        raise ParameterError("perflab duel --fail-on", problems)


def _is_tree(text: str) -> bool:
    return text.partition("=")[2].startswith(("git:", "tree:"))


def read_duel(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of a file, by the names of parameters, and where each stands in the file.

    ``[variants]`` holds NAME = "KIND:WHAT", ``[service]`` the parameters of how variants are
    started and what they need, ``[load]`` those of the load; all may stand at the top as well.
    Relative paths begin at the folder of the file, unless it names another. Tables of a project
    that are not about duels are passed over.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(SUBJECT, [f"{path}: {cause(error)}"]) from None
    for table in OF_A_PROJECT if path.name == FILE else ():
        content.pop(table, None)
    lines = {keys: line for keys, line in _lines(text).items() if keys[0] in content}
    places = {keys: f"{path}, line {line}: " for keys, line in lines.items()}
    problems = [
        f"{places[keys]}{'.'.join(keys)} {problem}"
        for keys, value in _leaves(content)
        if (problem := _problem(keys, value, content))
    ]
    if problems:
        raise ParameterError(SUBJECT, problems)
    values: dict[str, Any] = {}
    for keys, value in _leaves(content):
        if keys[:-1] in MAPPINGS:
            values.setdefault(_parameter(keys), []).append(f"{keys[-1]}={value}")
        else:
            values[_parameter(keys)] = value
    folder = path.resolve().parent
    if values:
        values["folder"] = str(folder / str(values.get("folder", "")))
    for name in FILES:
        # A script may be a module's as well.
        if name in values and (name != "script" or ".py:" in str(values[name])):
            values[name] = str(folder / str(values[name]))
    for item in (values, *values.get("requests", ())):
        if isinstance(item, dict) and str(item.get("body", "")).startswith(SIGN):
            item["body"] = f"{SIGN}{folder / str(item['body'])[1:]}"
    return values, {_parameter(keys): place for keys, place in reversed(places.items())}


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
        return "must be text in quotes" * (not isinstance(value, str | int | float))
    if len(keys) > 2:
        return f"is within {'.'.join(keys[:-1])}, which must be text, a number or a list"
    if isinstance(value, Mapping | datetime.date | datetime.time):
        return "must be text, a number or a list"
    return ""


def _leaves(table: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield all values that are no tables, and empty tables but those which the file may have."""
    for name, value in table.items():
        keys = (*above, name)
        if isinstance(value, Mapping) and (value or keys in KNOWN):
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
