"""``duel.toml``: variants, load and gate of a duel; every wrong key is told."""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import create_model

from perflab import systems
from perflab.errors import ParameterError
from perflab.parameters import check, did_you_mean

SUBJECT = "perflab duel"
VARIANTS, LOAD = "variants", "load"
KeyPath = tuple[str, ...]


def given(
    experiment: str, file: str, options: dict[str, Any], run: str
) -> tuple[dict[str, Any], list[str], bool]:
    """Return the parameters, thresholds and strictness of a file and of options that overrule it.

    Of a ``run`` that is to be finished, the other parameters are not checked here: it has its own.
    Raises ParameterError with every problem.
    """
    values = {**(read_duel(Path(file)) if file else {}), **options}
    if run:
        values.pop("folder", None)
    elif VARIANTS not in values:
        problem = "there are no variants: give two --variant NAME=KIND:WHAT, or a file"
        raise ParameterError(SUBJECT, [problem])
    else:
        values.setdefault("folder", str(Path.cwd()))
    gate: Any = {"fail_on": (tuple[str, ...], ()), "strict": (bool, False)}
    base = systems.experiment(experiment).parameters
    checked: Any = check(
        create_model("DuelParameters", __base__=base, **gate),
        {name: value for name, value in values.items() if name in gate or not run},
        f"{SUBJECT} {file}".strip(),
    )
    of_run = {name: value for name, value in values.items() if name not in gate}
    return of_run | ({"resume": run} if run else {}), list(checked.fail_on), checked.strict


def read_duel(path: Path) -> dict[str, Any]:
    """Return the values of a file, by the names of parameters.

    ``[variants]`` holds NAME = "KIND:WHAT", ``[load]`` the parameters of the load; all others stand
    at the top. Relative paths begin at the folder of the file, unless it names another.
    """
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(SUBJECT, [f"{path}: {error}"]) from None
    problems = [
        f"{path}: {'.'.join(keys)} {problem}"
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
    return {**values, "folder": str(folder / str(values.get("folder", "")))}


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
        entry = f'"{".".join(keys[1:])}" = {json.dumps(str(value))}'
        return f"is a table: put a name with dots in quotes ({entry})"
    elif table == VARIANTS and not isinstance(value, str):
        return 'must be text in quotes, like "command:python3 server.py --port {port}"'
    if len(keys) > 2 or isinstance(value, (Mapping, datetime.date, datetime.time)):
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
