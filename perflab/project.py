"""A user's project: the folder of a ``perflab.toml``, and where its results and experiments are."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import ParameterError

FILE, NOTEBOOK, IGNORED = "perflab.toml", "duel.ipynb", ".gitignore"
# What ``perflab new project`` writes, or adds lines to.
WRITTEN = (FILE, NOTEBOOK, IGNORED)
RESULTS = {"runs": "perflab-runs", "figures": "figures", "sweeps": "perflab-sweeps"}
EXPERIMENTS = "perflab_experiments"
# The tables that are read here, with their defaults. All others are about duels, whose parameters
# check them.
TABLES_HERE: Mapping[str, Mapping[str, object]] = {
    "results": RESULTS,
    "experiments": {"folders": [EXPERIMENTS]},
}
OF_DUELS = ("service", "load")
# The experiment that a duel is.
DUELS = "custom_service"
# What a project's notebook compares: the last two commits, started as the project's file says.
OF_THE_NOTEBOOK = {
    "project": FILE,
    "variants": ["old=git:.@HEAD~1", "new=git:.@HEAD"],
}


@dataclass(frozen=True)
class Project:
    """The folders of a project, all absolute: of results by kind, and those that hold systems."""

    file: Path
    results: Mapping[str, Path]
    experiments: tuple[Path, ...]


def project() -> Project | None:
    """Return the project of the working folder, by the nearest ``perflab.toml`` in it or above.

    Folders of experiments may be missing where the file does not name them. ParameterError names
    what in the file is wrong.
    """
    file = project_file()
    if file is None:
        return None
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(str(file), [f"cannot be read: {error}"]) from None
    problems = _problems(content)
    if problems:
        raise ParameterError(str(file), problems)
    places = {
        name: _place(file, content.get("results", {}).get(name, default))
        for name, default in RESULTS.items()
    }
    named = content.get("experiments", {}).get("folders")
    folders = tuple(_place(file, each) for each in ([EXPERIMENTS] if named is None else named))
    missing = [each for each in folders if not each.is_dir()]
    if missing and named is not None:
        way_out = "is no folder; make it, or take it off the list"
        raise ParameterError(str(file), [f"folders: {each} {way_out}" for each in missing])
    return Project(file, places, tuple(each for each in folders if each.is_dir()))


def project_file() -> Path | None:
    """Return the nearest ``perflab.toml``, in the working folder or above it.

    The file names folders whose modules are executed. So a file counts only if it belongs to this
    user or to root: one that a stranger put into ``/tmp`` is passed over. One of this user that
    others can change raises a ParameterError.
    """
    try:
        begin = Path.cwd().resolve()
    except FileNotFoundError:  # the working folder was deleted
        return None
    for folder in (begin, *begin.parents):
        if (folder / FILE).is_file() and _is_trusted(folder / FILE):
            return folder / FILE
    return None


def _is_trusted(file: Path) -> bool:
    facts = file.stat()
    if facts.st_uid not in (0, os.getuid()):
        return False
    # Many users are alone in their group, and by default their group may write their files.
    others_may_write = (
        stat.S_IWOTH if facts.st_gid in (0, os.getgid()) else stat.S_IWOTH | stat.S_IWGRP
    )
    if facts.st_mode & others_may_write:
        way_out = f"it names modules that are executed; 'chmod go-w {file}' keeps it yours"
        raise ParameterError(str(file), [f"others can write to it: {way_out}"])
    return True


def _place(file: Path, name: str) -> Path:
    return (file.parent / Path(name).expanduser()).resolve()


def _problems(content: Mapping[str, object]) -> list[str]:
    """Return in sentences what a file holds that has no meaning."""
    problems = []
    for table, values in content.items():
        known = TABLES_HERE.get(table)
        if known is None:
            # What stands at the top is a parameter of a duel.
            if table not in OF_DUELS and isinstance(values, dict):
                listed = ", ".join((*TABLES_HERE, *OF_DUELS))
                problems.append(f"[{table}] has no meaning; there are: {listed}")
        elif not isinstance(values, dict):
            problems.append(f"{table} must be a table: [{table}]")
        else:
            problems += [
                f"{key} of [{table}] {fault}"
                for key, value in values.items()
                if (fault := _fault(value, key, known))
            ]
    return problems


def _fault(value: object, key: str, known: Mapping[str, object]) -> str:
    """Return what is wrong with a value, or an empty string."""
    if key not in known:
        return f"has no meaning; there are: {', '.join(known)}"
    if isinstance(known[key], str):
        return "" if isinstance(value, str) and value else f'must be a folder, as "{known[key]}"'
    are_folders = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
    return "" if are_folders else f'must be a list of folders, as ["{EXPERIMENTS}"]'
