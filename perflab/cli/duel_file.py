"""``duel.toml``: variants, load and gate of a duel; every wrong key is told."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import create_model

from perflab import systems
from perflab.errors import ParameterError
from perflab.parameters import check

SUBJECT = "perflab duel"
VARIANTS, LOAD = "variants", "load"


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
    else:
        values.setdefault("folder", str(Path.cwd()))
    gate: Any = {"fail_on": (tuple[str, ...], ()), "strict": (bool, False)}
    base = systems.experiment(experiment).parameters
    checked: Any = check(
        create_model("DuelParameters", __base__=base, **gate),
        {name: value for name, value in values.items() if name in gate or not run},
        f"{SUBJECT} {file}".strip(),
    )
    if not run and VARIANTS not in values:
        problem = "there are no variants: give two --variant NAME=KIND:WHAT, or a file"
        raise ParameterError(SUBJECT, [problem])
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
    variants, load = content.pop(VARIANTS, {}), content.pop(LOAD, {})
    if not (isinstance(variants, dict) and isinstance(load, dict)):
        problem = f'[{VARIANTS}] and [{LOAD}] are tables: lines like NAME = "..." stand below them'
        raise ParameterError(f"{SUBJECT} {path}", [problem])
    problems = [
        f"{name} stands both at the top and in [{LOAD}]" for name in load if name in content
    ]
    for name, text in variants.items():
        if not isinstance(text, str):
            example = f'"{name}" = "command:python3 server.py --port {{port}}"'
            problems.append(f"{VARIANTS}.{name} must be text: put both in quotes, like {example}")
    if problems:
        raise ParameterError(f"{SUBJECT} {path}", problems)
    values = {**content, **load}
    if variants:
        values[VARIANTS] = [f"{name}={text}" for name, text in variants.items()]
    folder = path.resolve().parent
    return {**values, "folder": str(folder / str(values.get("folder", "")))}
