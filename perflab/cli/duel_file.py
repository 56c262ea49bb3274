"""What a duel is given: by options, and by ``duel.toml`` or the project's ``perflab.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import create_model

from perflab import systems
from perflab.cli.duel_blocks import with_enough_blocks
from perflab.errors import ParameterError
from perflab.load.flags import flag_of
from perflab.parameters import check, unknown
from perflab.project import OF_DUELS, project_file
from perflab.trials.arguments import asked_for, order_of
from perflab.trials.parameter_file import GATE, VARIANTS, merged, read_parameters

SUBJECT = "perflab duel"
STARTED_BY = ("command", "setup")


def given(
    experiment: str, file: str, options: dict[str, Any], run: str, fail_on: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str], bool]:
    """Return the parameters, thresholds and strictness of a file and of options that overrule it.

    Without a file it is the project's ``perflab.toml``, if that has a service or a load. The
    thresholds of ``fail_on`` are added to those of the file, and a new run has enough blocks for
    all (:mod:`perflab.cli.duel_blocks`).

    Of a ``run`` that is to be finished, the other parameters are not checked here: it has its own.
    Of the project's file it then gets the gate alone.
    Raises ParameterError with every problem.
    """
    found = Path(file) if file else project_file()
    of_file, places = read_parameters(found, SUBJECT) if found else ({}, {})
    if run and not file:
        of_file = {name: value for name, value in of_file.items() if name in GATE}
    values = merged(of_file, options, found) if found else dict(options)
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
    gate: Any = dict(zip(GATE, ((tuple[str, ...], ()), (bool, False)), strict=True))
    base = systems.experiment(experiment).parameters
    checked: Any = check(
        create_model("DuelParameters", __base__=base, **gate),
        {name: value for name, value in values.items() if name in gate or not run},
        SUBJECT,
        lambda name: "" if name in options else places.get(name, ""),
        lambda name: _flag(name) if name in options else "",
    )
    of_run = {name: value for name, value in values.items() if name not in gate}
    thresholds = [*checked.fail_on, *fail_on]
    if run:
        return of_run | {"resume": run}, thresholds, checked.strict
    _refuse_unknown_requests(thresholds, checked.request_names)
    of_all_pairs = len(thresholds) * (len(checked.variants) - 1)
    return with_enough_blocks(of_run, checked, of_all_pairs, SUBJECT), thresholds, checked.strict


def problems_of_project(experiment: str) -> list[str] | None:
    """Return why a duel of the project's revisions could not begin here.

    None without a file, and where it has neither a service nor a load, not even an empty one.

    The checks are those of a duel, on the commit that is checked out.
    """
    file = project_file()
    of_file = read_parameters(file, SUBJECT)[0] if file else {}
    if not (of_file or (file and {*OF_DUELS} & {*tomllib.loads(file.read_text("utf-8"))})):
        return None
    problems = _problems(experiment, "git:.@HEAD")
    of_commit = [problem for problem in problems if problem.startswith(_flag(VARIANTS))]
    if not of_commit:
        return problems
    cause = of_commit[0].partition("; ")[0].partition("command: ")[2]
    told = [f"--against has no commit to compare ({cause}): git init, and commit"]
    told += [problem for problem in problems if problem not in of_commit]
    if "command" in of_file:
        # That hides what is checked after it; a command by itself needs no commit.
        told += _problems(experiment, f"command:{of_file['command']}")
    return [*dict.fromkeys(told)]


def says_what_is_requested() -> bool:
    """Tell whether the project's sound file says what users ask for."""
    file = project_file()
    return not file or not {"path", "requests", "script"}.isdisjoint(
        read_parameters(file, SUBJECT)[0]
    )


def unused_stores() -> list[str]:
    """Return the stores in the project's sound file whose address nothing gets, by their names."""
    file = project_file()
    if not file:
        return []
    values, _ = read_parameters(file, SUBJECT)
    reached = "\n".join([*values.get("env", ()), *(values.get(key, "") for key in STARTED_BY)])
    names = [text.partition("=")[0] for text in values.get("needs", ())]
    return [name for name in names if f"{{{name}." not in reached]


def _problems(experiment: str, variant: str) -> list[str]:
    """Return why a duel of a variant with itself could not begin."""
    names = ("command", "again")
    try:
        values, _, _ = given(
            experiment, "", {VARIANTS: [f"{name}={variant}" for name in names]}, ""
        )
        chosen = systems.experiment(experiment)
        order_of(chosen, asked_for(chosen, values))
    except ParameterError as error:
        return [each for each in error.problems if not each.startswith(names[1])]
    return []


def _flag(name: str) -> str:
    """Return the option of a parameter."""
    return "--variant" if name == VARIANTS else flag_of(name)


def _refuse_unknown_requests(thresholds: Sequence[str], names: Sequence[str]) -> None:
    """Raise ParameterError for thresholds on requests that the load does not have."""
    asked = [text.rpartition(":")[0].strip() for text in thresholds if ":" in text]
    if problems := unknown("request", asked, names):
        raise ParameterError("perflab duel --fail-on", problems)
