"""``duel.toml``: variants, load and gate of a duel; every wrong key is told with its line."""

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
from perflab.errors import ParameterError
from perflab.parameters import check, did_you_mean

SUBJECT = "perflab duel"
VARIANTS, LOAD = "variants", "load"
KeyPath = tuple[str, ...]


def given(
    experiment: str, file: str, options: dict[str, Any], run: str, fail_on: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str], bool]:
    """Return the parameters, thresholds and strictness of a file and of options that overrule it.

    The thresholds of ``fail_on`` are added to those of the file, and a new run has enough blocks
    for all (:mod:`perflab.cli.duel_blocks`).

    Of a ``run`` that is to be finished, the other parameters are not checked here: it has its own.
    Raises ParameterError with every problem.
    """
    of_file, places = read_duel(Path(file)) if file else ({}, {})
    values = {**of_file, **options}
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
    )
    of_run = {name: value for name, value in values.items() if name not in gate}
    bounds = [*checked.fail_on, *fail_on]
    if run:
        return of_run | {"resume": run}, bounds, checked.strict
    of_all_pairs = len(bounds) * (len(checked.variants) - 1)
    return with_enough_blocks(of_run, checked, of_all_pairs, SUBJECT), bounds, checked.strict


def read_duel(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of a file, by the names of parameters, and where each stands in the file.

    ``[variants]`` holds NAME = "KIND:WHAT", ``[load]`` the parameters of the load; all others stand
    at the top. Relative paths begin at the folder of the file, unless it names another.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(SUBJECT, [f"{path}: {error}"]) from None
    places = {keys: f"{path}, line {line}: " for keys, line in _lines(text).items()}
    problems = [
        f"{places[keys]}{'.'.join(keys)} {problem}"
        for keys, value in _leaves(content)
        if (problem := _problem(keys, value, content))
    ]
    if problems:
        raise ParameterError(SUBJECT, problems)
    variants, load = content.pop(VARIANTS, {}), content.pop(LOAD, {})
    values = {**content, **load}
    if variants:
        values[VARIANTS] = [f"{name}={text}" for name, text in variants.items()]
    folder = path.resolve().parent
    values["folder"] = str(folder / str(values.get("folder", "")))
    if "header_file" in values:
        values["header_file"] = str(folder / str(values["header_file"]))
    of_names = (keys for keys in places if keys[0] != VARIANTS or len(keys) == 1)
    return values, {keys[-1]: places[keys] for keys in of_names}


def _problem(keys: KeyPath, value: object, content: Mapping[str, Any]) -> str:
    """Return what is wrong with the kind or place of a key."""
    table, name = keys[0], keys[-1]
    if table not in (VARIANTS, LOAD):
        if len(keys) > 1:
            hint = did_you_mean(table, (VARIANTS, LOAD))
            return f"is in no table of this file{hint}; tables: [{VARIANTS}] and [{LOAD}]"
    elif len(keys) == 1:
        return f'must be a table: write [{table}], and below it lines like NAME = "..."'
    elif table == LOAD and name in content:
        return f"stands both at the top and in [{LOAD}]"
    elif table == VARIANTS and len(keys) > 2:
        entry = f'"{".".join(keys[1:])}" = {json.dumps(str(value), ensure_ascii=False)}'
        return f"is a table: put a name with dots in quotes ({entry})"
    elif table == VARIANTS and not isinstance(value, str):
        return 'must be text in quotes, like "command:python3 server.py --port {port}"'
    if len(keys) > 2:
        return f"is within {'.'.join(keys[:-1])}, which must be text, a number or a list"
    if isinstance(value, (Mapping, datetime.date, datetime.time)):
        return "must be text, a number or a list"
    return ""


def _leaves(table: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield all values that are no tables, and empty tables but those which the file may have."""
    for name, value in table.items():
        keys = (*above, name)
        if isinstance(value, Mapping) and (value or keys in ((VARIANTS,), (LOAD,))):
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
