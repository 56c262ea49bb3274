"""The folders of the lab: the checkout, recordings, figures, and its state on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from perflab.project import RESULTS, project

# It separates several folders as PATH does.
FOREIGN = "PERFLAB_SYSTEMS"
# They name folders from the working folder on; a child may work in another one.
PLACES = ("PERFLAB_STATE", "PERFLAB_ENVIRONMENTS", "PERFLAB_COMPILED", "PERFLAB_LOCK")
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


def _works_in_checkout() -> bool:
    """Return whether the working folder is one of the lab's checkout, or is gone."""
    try:
        return is_checkout() and Path.cwd().resolve().is_relative_to(project_root())
    except FileNotFoundError:
        return is_checkout()


def _results(name: str, in_checkout: str) -> Path:
    """Return a folder of results: the project's, the checkout's for work in it, else one here."""
    of = project()
    if of is not None:
        return of.results[name]
    return project_root() / in_checkout if _works_in_checkout() else Path.cwd() / RESULTS[name]


def runs_dir() -> Path:
    """Return the folder of recordings (``PERFLAB_RUNS`` overrides it)."""
    return _place("PERFLAB_RUNS", _results("runs", "data/runs"))


def documents_dir() -> Path:
    """Return the folder whose documents and figures are the user's: project, checkout or here."""
    of = project()
    return of.file.parent if of else project_root() if _works_in_checkout() else Path.cwd()


def reference_dir() -> Path:
    """Return the folder of the runs that ship (``PERFLAB_REFERENCE`` overrides it)."""
    return _place("PERFLAB_REFERENCE", project_root() / "data" / "reference")


def figures_dir() -> Path:
    """Return the folder of exported figures (``PERFLAB_FIGURES`` overrides it)."""
    return _place("PERFLAB_FIGURES", _results("figures", "figures/runs"))


def sweeps_dir() -> Path:
    """Return the folder of sweeps (``PERFLAB_SWEEPS`` overrides it)."""
    return _place("PERFLAB_SWEEPS", _results("sweeps", "data/sweeps"))


def services_dir() -> Path:
    """Return the folder of the services that belong to no single system."""
    return project_root() / "services"


def foreign_dirs() -> list[Path]:
    """Return the folders with systems from outside the lab; the first system of a name counts.

    The folders of ``PERFLAB_SYSTEMS`` come first, then those of the nearest ``perflab.toml``.
    """
    names = os.environ.get(FOREIGN, "").split(os.pathsep)
    folders = [Path(folder).resolve() for folder in names if folder]
    of = project()
    return list(dict.fromkeys([*folders, *(of.experiments if of else ())]))


def make_importable() -> None:
    """Let the folders of systems be imported by their names, as packages of the user's project.

    They come last, so that no file of a project hides a package.
    """
    parents = (str(home.parent) for home in foreign_dirs())
    sys.path += [parent for parent in dict.fromkeys(parents) if parent not in sys.path]


def foreign_environment() -> dict[str, str]:
    """Return the environment by which a child in another folder finds the same systems and places.

    Places keep their links: their owners are checked.
    """
    folders = foreign_dirs()
    systems = {FOREIGN: os.pathsep.join(map(str, folders))} if folders else {}
    given = {name: place for name in PLACES if (place := os.environ.get(name))}
    return systems | {name: str(Path(place).absolute()) for name, place in given.items()}


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
