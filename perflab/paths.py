"""The folders of the lab: the checkout, recordings, figures, and its state on this machine."""

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


def user_file() -> Path | None:
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
        if (folder / NAME).is_file() and _is_trusted(folder / NAME):
            return folder / NAME
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


def folders_named() -> list[Path]:
    """Return the folders of experiments in ``perflab.toml``; relative ones begin at the file."""
    file = user_file()
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
    names = content.get(TABLE, {KEY: []})[KEY]
    places = [(file.parent / Path(name).expanduser()).resolve() for name in names]
    problems = [
        f"{KEY}: {place} is no folder; make it, or take it off the list"
        for place in places
        if not place.is_dir()
    ]
    if problems:
        raise ParameterError(str(file), problems)
    return places


def text() -> str:
    """Return the text of a ``perflab.toml`` that names the default folder."""
    return f'[{TABLE}]\n{KEY} = ["{DEFAULT}"]\n'


def _is_understood(content: dict[str, Any]) -> bool:
    """Return whether a file holds a list of folders and nothing else."""
    table = content.get(TABLE, {KEY: []})
    if set(content) - {TABLE} or not isinstance(table, dict) or set(table) != {KEY}:
        return False
    return isinstance(table[KEY], list) and all(
        isinstance(folder, str) and folder for folder in table[KEY]
    )


# It separates several folders as PATH does.
FOREIGN = "PERFLAB_SYSTEMS"
_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent


def _place(variable: str, default: Path) -> Path:
    override = os.environ.get(variable)
    return Path(override).resolve() if override else default


def is_checkout() -> bool:
    """Return whether the package stands in a checkout; a wheel carries the parts that it needs."""
    return (_CHECKOUT / "pyproject.toml").exists()


def project_root() -> Path:
    """Return the checkout, or its parts in an installed package (``PERFLAB_ROOT`` overrides it)."""
    return _place("PERFLAB_ROOT", _CHECKOUT if is_checkout() else _PACKAGE / "checkout")


def _results(in_checkout: str, in_project: str) -> Path:
    """Return a folder of results: in the checkout, else in the folder where the user works."""
    return project_root() / in_checkout if is_checkout() else Path.cwd() / in_project


def runs_dir() -> Path:
    """Return the folder of recordings (``PERFLAB_RUNS`` overrides it, but not by an address)."""
    override = os.environ.get("PERFLAB_RUNS", "")
    if "://" in override:
        raise ParameterError(
            "PERFLAB_RUNS",
            [f"'{override}' is no folder; bring its runs by 'perflab runs --from ADDRESS'"],
        )
    return _place("PERFLAB_RUNS", _results("data/runs", "perflab-runs"))


def reference_dir() -> Path:
    """Return the folder of the runs that ship (``PERFLAB_REFERENCE`` overrides it)."""
    return _place("PERFLAB_REFERENCE", project_root() / "data" / "reference")


def figures_dir() -> Path:
    """Return the folder of exported figures (``PERFLAB_FIGURES`` overrides it)."""
    return _place("PERFLAB_FIGURES", _results("figures/runs", "figures"))


def sweeps_dir() -> Path:
    """Return the folder of sweeps (``PERFLAB_SWEEPS`` overrides it)."""
    return _place("PERFLAB_SWEEPS", _results("data/sweeps", "perflab-sweeps"))


def services_dir() -> Path:
    """Return the folder of the services that belong to no single system."""
    return project_root() / "services"


def foreign_dirs() -> list[Path]:
    """Return the folders with systems from outside the lab; the first system of a name counts.

    The folders of ``PERFLAB_SYSTEMS`` come first, then those of the nearest ``perflab.toml``.
    """
    names = os.environ.get(FOREIGN, "").split(os.pathsep)
    folders = [Path(folder).resolve() for folder in names if folder]
    return list(dict.fromkeys([*folders, *folders_named()]))


def foreign_environment() -> dict[str, str]:
    """Return the environment by which a child in another folder finds the same systems."""
    folders = foreign_dirs()
    return {FOREIGN: os.pathsep.join(map(str, folders))} if folders else {}


def parts_of_systems(part: str) -> list[Path]:
    """Return the folders called ``part`` of all systems."""
    return [
        folder for home in _homes() for folder in sorted(home.glob(f"*/{part}")) if folder.is_dir()
    ]


def foreign_system(file: Path) -> str:
    """Return the system from outside the lab that a file belongs to; empty for the lab's own."""
    homes = (home for home in foreign_dirs() if file.is_relative_to(home) and file != home)
    return next((file.relative_to(home).parts[0] for home in homes), "")


def foreign_systems() -> dict[str, Path]:
    """Return the folder of every system from outside the lab, by name."""
    folders: dict[str, Path] = {}
    for home in foreign_dirs():
        for place in sorted(home.glob("*/__init__.py")):
            folders.setdefault(place.parent.name, place.parent)
    return folders


def _homes() -> list[Path]:
    """Return the folders that hold systems."""
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

    It lies under ``/var/tmp`` by default, because a database's files must be on a real disk
    (``PERFLAB_STATE`` overrides it). Links are not resolved: the callers check their owners.
    """
    override = os.environ.get("PERFLAB_STATE")
    return Path(override or f"/var/tmp/perflab-{os.getuid()}").absolute()


def variants_dir() -> Path:
    """Return the folder of services from the parameters of runs, named by their content."""
    return state_dir() / "variants"


def environments_dir() -> Path:
    """Return the folder of the services' environments (``PERFLAB_ENVIRONMENTS`` overrides it).

    Environments are named by their content, so that several states can share them.
    """
    return Path(os.environ.get("PERFLAB_ENVIRONMENTS") or state_dir() / "environments").absolute()


def compiled_dir() -> Path:
    """Return the folder of compiled services (``PERFLAB_COMPILED`` overrides it)."""
    return Path(os.environ.get("PERFLAB_COMPILED") or state_dir() / "compiled").absolute()


def open_dir() -> Path:
    """Return the folder for programs and data of servers that refuse to run as root.

    Other users may pass through it, but change nothing. Only root needs such a separate folder.
    """
    state = state_dir()
    return state if os.getuid() else state.with_name(f"{state.name}-open")


def lock_path() -> Path:
    """Return the lock of this user's measurements on this host (``PERFLAB_LOCK`` overrides it).

    It lies in the user's own folder, wherever ``PERFLAB_STATE`` points.
    """
    override = os.environ.get("PERFLAB_LOCK")
    return Path(override or f"/var/tmp/perflab-{os.getuid()}/measuring.lock").absolute()
