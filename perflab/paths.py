"""Where things live: the checkout, recordings, figures, and the lab's own state on this machine."""

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


def folders_named(start: Path | None = None) -> list[Path]:
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


# Several folders are separated as in PATH.
FOREIGN = "PERFLAB_SYSTEMS"
_CHECKOUT = Path(__file__).resolve().parent.parent


def _place(variable: str, usual: Path) -> Path:
    override = os.environ.get(variable)
    return Path(override).resolve() if override else usual


def project_root() -> Path:
    """Return the checkout that this package belongs to (``PERFLAB_ROOT`` overrides it)."""
    return _place("PERFLAB_ROOT", _CHECKOUT)


def runs_dir() -> Path:
    """Return the folder of recordings (``PERFLAB_RUNS`` overrides it).

    Raises
    ------
    ParameterError
        It is the address of a store.
    """
    override = os.environ.get("PERFLAB_RUNS", "")
    if "://" in override:
        raise ParameterError(
            "PERFLAB_RUNS",
            [f"'{override}' is no folder; bring its runs by 'perflab runs --from ADDRESS'"],
        )
    return _place("PERFLAB_RUNS", project_root() / "data" / "runs")


def figures_dir() -> Path:
    """Return the folder of exported figures (``PERFLAB_FIGURES`` overrides it)."""
    return _place("PERFLAB_FIGURES", project_root() / "figures" / "runs")


def sweeps_dir() -> Path:
    """Return the folder of sweeps (``PERFLAB_SWEEPS`` overrides it)."""
    return _place("PERFLAB_SWEEPS", project_root() / "data" / "sweeps")


def services_dir() -> Path:
    """Return the folder of the service specimens that belong to no system alone."""
    return project_root() / "services"


def foreign_dirs() -> list[Path]:
    """Return the folders with systems from elsewhere; of two systems of one name the first counts.

    First those of ``PERFLAB_SYSTEMS`` (separated as PATH), then those of the nearest
    ``perflab.toml``.
    """
    named = os.environ.get(FOREIGN, "").split(os.pathsep)
    told = [Path(folder).resolve() for folder in named if folder]
    return list(dict.fromkeys([*told, *folders_named()]))


def foreign_environment() -> dict[str, str]:
    """Return what a child in another working directory must be told to find the same systems."""
    folders = foreign_dirs()
    return {FOREIGN: os.pathsep.join(map(str, folders))} if folders else {}


def parts_of_systems(part: str) -> list[Path]:
    """Return the folders called ``part`` that systems have, by the names of the systems."""
    return [
        found for home in _homes() for found in sorted(home.glob(f"*/{part}")) if found.is_dir()
    ]


def system_folder(file: Path) -> Path:
    """Return the folder of the system that a file belongs to, else the folder it lies in."""
    for home in _homes():
        if file.is_relative_to(home) and file.parent != home:
            return home / file.relative_to(home).parts[0]
    return file.parent


def foreign_system(file: Path) -> str:
    """Return the system from elsewhere that a file or folder belongs to; empty for the lab's."""
    homes = (home for home in foreign_dirs() if file.is_relative_to(home) and file != home)
    return next((file.relative_to(home).parts[0] for home in homes), "")


def foreign_systems() -> dict[str, Path]:
    """Return the folder of every system from elsewhere, by name."""
    found: dict[str, Path] = {}
    for home in foreign_dirs():
        for place in sorted(home.glob("*/__init__.py")):
            found.setdefault(place.parent.name, place.parent)
    return found


def _homes() -> list[Path]:
    """Return the folders in which there are systems."""
    return [Path(__file__).parent / "systems", *foreign_dirs()]


def notebooks_dir() -> Path:
    """Return the folder of the notebooks (``PERFLAB_NOTEBOOKS`` overrides it)."""
    return _place("PERFLAB_NOTEBOOKS", project_root() / "notebooks")


def notebook_file(experiment: str) -> Path:
    """Return an experiment's notebook: the lab's, else the one in its system's ``notebooks/``."""
    places = [notebooks_dir(), *parts_of_systems("notebooks")]
    files = [folder / f"{experiment}.ipynb" for folder in places]
    return next((file for file in files if file.is_file()), files[0])


def state_dir() -> Path:
    """Return the folder for stacks, their logs, and cached artifacts; nobody else may enter it.

    It lies under ``/var/tmp`` by default: a database's files must be on a real disk
    (``PERFLAB_STATE`` overrides it). Links are kept: whoever uses it checks whose they are.
    """
    override = os.environ.get("PERFLAB_STATE")
    return Path(override or f"/var/tmp/perflab-{os.getuid()}").absolute()


def variants_dir() -> Path:
    """Return the folder of services that parameters of a run describe, named by their content."""
    return state_dir() / "variants"


def environments_dir() -> Path:
    """Return the folder of the services' environments (``PERFLAB_ENVIRONMENTS`` overrides it).

    They are named by their content, so that several states can share them.
    """
    return Path(os.environ.get("PERFLAB_ENVIRONMENTS") or state_dir() / "environments").absolute()


def compiled_dir() -> Path:
    """Return the folder of compiled services (``PERFLAB_COMPILED`` overrides it), named alike."""
    return Path(os.environ.get("PERFLAB_COMPILED") or state_dir() / "compiled").absolute()


def open_dir() -> Path:
    """Return the folder of what a server that refuses root must reach: its programs and data.

    Others may pass through it, and change nothing. Only root needs it apart from the rest.
    """
    state = state_dir()
    return state if os.getuid() else state.with_name(f"{state.name}-open")


def lock_path() -> Path:
    """Return the lock of this user's measurements on this host (``PERFLAB_LOCK`` overrides it).

    It lies in a folder of the user's own, wherever ``PERFLAB_STATE`` points.
    """
    override = os.environ.get("PERFLAB_LOCK")
    return Path(override or f"/var/tmp/perflab-{os.getuid()}/measuring.lock").absolute()
