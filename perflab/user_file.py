"""``perflab.toml``: what a user's own project tells the lab; today where its experiments are."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from perflab.errors import ParameterError

NAME = "perflab.toml"
TABLE, KEY = "experiments", "folders"
DEFAULT = "perflab_experiments"


def found(start: Path | None = None) -> Path | None:
    """Return the file in a folder (the working one unless given) or the nearest one above it.

    It names folders whose modules are executed, so only one's own is believed, or root's: what a
    stranger laid into ``/tmp`` is passed over.

    Raises
    ------
    ParameterError
        It is one's own, and others can change it.
    """
    try:
        begin = (start or Path.cwd()).resolve()
    except FileNotFoundError:  # the working folder was deleted: nothing is above it
        return None
    for folder in (begin, *begin.parents):
        if (folder / NAME).is_file() and _is_believed(folder / NAME):
            return folder / NAME
    return None


def _is_believed(file: Path) -> bool:
    facts = file.stat()
    if facts.st_uid not in (0, os.getuid()):
        return False
    # Of many users the own group has nobody else in it, and files are made so that it may write.
    strange = stat.S_IWOTH if facts.st_gid in (0, os.getgid()) else stat.S_IWOTH | stat.S_IWGRP
    if facts.st_mode & strange:
        way_out = f"it names modules that are executed; 'chmod go-w {file}' keeps it yours"
        raise ParameterError(str(file), [f"others can write to it: {way_out}"])
    return True


def folders(start: Path | None = None) -> list[Path]:
    """Return the folders with experiments that the file names, relative ones as seen from it.

    Raises
    ------
    ParameterError
        The file cannot be read, or says what is not understood.
    """
    file = found(start)
    if file is None:
        return []
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(str(file), [f"cannot be read: {error}"]) from None
    if not _is_understood(content):
        raise ParameterError(
            str(file), [f'holds more, or something else, than [{TABLE}] and {KEY} = ["{DEFAULT}"]']
        )
    named = content.get(TABLE, {KEY: []})[KEY]
    places = [(file.parent / Path(each).expanduser()).resolve() for each in named]
    problems = [
        f"{KEY}: {place} is no folder; make it, or take it off the list"
        for place in places
        if not place.is_dir()
    ]
    if problems:
        raise ParameterError(str(file), problems)
    return places


def text() -> str:
    """Return a file that names the usual folder."""
    return f'[{TABLE}]\n{KEY} = ["{DEFAULT}"]\n'


def _is_understood(content: dict[str, Any]) -> bool:
    """Return whether a file holds a list of folders and nothing else."""
    table = content.get(TABLE, {KEY: []})
    if set(content) - {TABLE} or not isinstance(table, dict) or set(table) != {KEY}:
        return False
    return isinstance(table[KEY], list) and all(
        isinstance(each, str) and each for each in table[KEY]
    )
