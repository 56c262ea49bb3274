"""Laying out a new experiment in the user's own folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from perflab import user_file
from perflab.errors import ParameterError
from perflab.paths import foreign_dirs
from perflab.scaffold.asked import Service, service_of
from perflab.scaffold.files import files_of, write
from perflab.scaffold.names import problems_with


@dataclass(frozen=True)
class Laid:
    """A new experiment: its folder, the files in it, and ``perflab.toml`` where that is new."""

    home: Path
    files: tuple[Path, ...]
    made: Path | None
    service: Service


@dataclass(frozen=True)
class _Where:
    folder: Path
    toml: Path | None = None
    named: str = ""


def lay_out(
    name: str, to: str = "", service: str = "", command: str = "", path: str = "/", health: str = ""
) -> Laid:
    """Write a system folder with an experiment, a notebook, a service and a test.

    Parameters
    ----------
    name : str
        Of the experiment; its system, service and stack are named like it.
    to : str
        The folder that gets it; by default the first one that ``perflab.toml`` names, else
        ``perflab_experiments`` here, which a new ``perflab.toml`` will name.
    service : str
        An address, a command or a folder; an example without it.
    command : str
        How what is in the folder starts, where neither its service.toml nor its Dockerfile says so.
    path, health : str
        What the load asks for, and what shows that the service can be used (``path`` unless given).

    Raises
    ------
    ParameterError
        Every problem; nothing was written.
    """
    here = Path.cwd()
    problems = problems_with(name)
    found = service_of(service, command, here, problems)
    problems += [
        f"{option} {value}: begin it with a /, and write no blanks"
        for option, value in (("--path", path), ("--health", health or "/"))
        if not value.startswith("/") or not value.isascii() or not value.isprintable()
        or " " in value
    ]  # fmt: skip
    where = _where(to, here, problems)
    home = where.folder / name
    if not problems and os.path.lexists(home):
        problems.append(f"{home} is there already; choose another name, or move it away")
    if found.kind == "folder" and home.is_relative_to(found.folder):
        problems.append(
            f"--service {found.folder} would be copied into itself; give --to elsewhere"
        )
    if problems:
        raise ParameterError("perflab new experiment", problems)
    files = files_of(name, found, path, health or path)
    try:
        write(home, files, found)
        if where.toml is not None:
            where.toml.write_text(user_file.text(where.named), encoding="utf-8")
    except OSError as error:
        raise ParameterError("perflab new experiment", [f"{home}: {error}"]) from None
    return Laid(home, tuple(home / place for place in files), where.toml, found)


def _where(to: str, here: Path, problems: list[str]) -> _Where:
    file, known = user_file.found(here), foreign_dirs()
    if not to:
        named = user_file.folders(here)
        if named:
            return _Where(named[0])
        to = user_file.DEFAULT
    folder = (here / Path(to).expanduser()).resolve()
    if folder.exists() and not folder.is_dir():
        problems.append(f"--to {folder} is no folder")
    if folder in known:
        return _Where(folder)
    if file is not None:
        problems.append(
            f"--to {folder}: {file} does not name it, so nothing there would be found; add it to "
            "its folders first, or leave --to out"
        )
        return _Where(folder)
    named_as = str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)
    return _Where(folder, here / user_file.NAME, named_as)
