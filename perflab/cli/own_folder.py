"""``--experiments DIR``: a folder with experiments of one's own, for one command."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from perflab.errors import ParameterError
from perflab.paths import FOREIGN, foreign_environment


def look_in(folder: str) -> str:
    """Let this process and its children find the systems of a folder before all other foreign ones.

    Raises
    ------
    ParameterError
        There is no such folder.
    """
    if not folder:
        return folder
    place = Path(folder).expanduser().resolve()
    if not place.is_dir():
        raise ParameterError("--experiments", [f"{place} is no folder"])
    before = os.environ.get(FOREIGN, "")
    os.environ[FOREIGN] = os.pathsep.join(filter(None, [str(place), before]))
    systems = sys.modules.get("perflab.systems")
    if systems is not None:
        # The lab's own are first on the path and stay so; of two foreign ones the one named last.
        systems.__path__.insert(1, str(place))
    return folder


def hand_on() -> None:
    """Tell children, which work in other folders, where perflab.toml says that systems are."""
    os.environ.update(foreign_environment())


# Eager: what other options complete to and are checked by must be found by then.
OPTION = Annotated[
    str,
    typer.Option(
        "--experiments",
        metavar="DIR",
        help="also experiments of this folder; goes before PERFLAB_SYSTEMS and perflab.toml",
        callback=look_in,
        is_eager=True,
    ),
]
NAME = "experiments_folder"


def finding_experiments(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with ``--experiments DIR`` besides its own options."""

    @functools.wraps(command)
    def carried_out(**given: Any) -> None:
        given.pop(NAME, None)
        command(**given)

    hints = {**get_type_hints(command, include_extras=True), NAME: OPTION}
    own = inspect.signature(command)
    known = [each.replace(annotation=hints[each.name]) for each in own.parameters.values()]
    added = inspect.Parameter(NAME, inspect.Parameter.KEYWORD_ONLY, default="", annotation=OPTION)
    carried_out.__signature__ = own.replace(parameters=[*known, added])  # type: ignore[attr-defined]
    carried_out.__annotations__ = hints
    return carried_out
