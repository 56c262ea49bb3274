"""The systems under study: each is a folder that holds all that only it knows.

The lab finds the parts of a system by name: ``experiments/``, ``responses.py``, ``rules.py``,
``views.py``, ``stacks.py``, ``services/``, ``published/`` and ``notebooks/`` (see "Adding a system"
in CONTRIBUTING.md).

``PERFLAB_SYSTEMS`` (separated as in ``PATH``) or ``perflab.toml`` names folders with further
systems. They are packages of the user's project: ``perflab_experiments/checkout`` is imported as
``perflab_experiments.checkout``.

Load workers import users' scripts from this package, so its functions import what only they need.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar, cast

from perflab.errors import ExperimentError, ParameterError
from perflab.parameters import did_you_mean
from perflab.paths import foreign_dirs, make_importable

if TYPE_CHECKING:
    from perflab.recordings import Response
    from perflab.trials.experiment import Experiment, ReadyStack

Declared = TypeVar("Declared")

# Folders of systems, the lab's own first, and the package as which each is imported.
HOMES = {Path(__file__).parent: __name__, **{home: home.name for home in foreign_dirs()}}
make_importable()


def systems() -> list[str]:
    """Return the names of all systems."""
    return sorted(_folders())


def folder_of(system: str) -> Path:
    """Return a system's folder: the first with its name."""
    folders = _folders()
    if system not in folders:
        raise ParameterError("system", [f"no system '{system}'{did_you_mean(system, folders)}"])
    return folders[system]


def package_of(system: str) -> str:
    """Return the name by which a system is imported.

    ExperimentError where another package hides the folder that the system is in.
    """
    home = folder_of(system).parent
    package = HOMES[home]
    try:
        found = list(importlib.import_module(package).__path__)
    except (ImportError, AttributeError):
        found = []
    if not home.name.isidentifier() or str(home) not in found:
        raise ExperimentError(
            f"{home}: the name '{package}' is that of another module, or cannot be one; give the "
            "folder another name, of letters, digits and _"
        )
    return f"{package}.{system}"


def _folders() -> dict[str, Path]:
    folders: dict[str, Path] = {}
    for home in HOMES:
        for place in home.glob("*/__init__.py"):
            folders.setdefault(place.parent.name, place.parent)
    return folders


def names() -> list[str]:
    """Return the names of all experiments, those in broken modules included."""
    return sorted(_modules())


def system_of(experiment: str) -> str:
    """Return the system that an experiment belongs to; raises ParameterError for an unknown one."""
    known = _modules()
    if experiment not in known:
        listed = ", ".join(sorted(known))
        raise ParameterError(
            "experiment",
            [f"no experiment '{experiment}'{did_you_mean(experiment, known)}; there are: {listed}"],
        )
    return known[experiment]


def experiment(name: str) -> Experiment:
    """Return an experiment by name.

    Raises
    ------
    ParameterError
        No experiment has that name; the message proposes the nearest.
    ExperimentError
        The experiment's module is wrong; the message names the file and the fault.
    """
    system = system_of(name)
    module = f"experiments.{name}"
    declaration = getattr(_imported(system, module), "EXPERIMENT", None)
    fault = _fault(declaration, name)
    if fault:
        raise ExperimentError(f"{_file(system, module)}: {fault}")
    return replace(cast("Experiment", declaration), system=system, responses=responses(system))


def experiments() -> list[Experiment]:
    """Return all experiments that can be used, by system and name."""
    usable = []
    for name in names():
        with contextlib.suppress(ExperimentError):
            usable.append(experiment(name))
    return sorted(usable, key=lambda item: (item.system, item.name))


def responses(system: str) -> tuple[Response, ...]:
    """Return the responses that a system declares, or the common ones if it declares none."""
    from perflab.recordings import Response
    from perflab.recordings.responses import COMMON

    return tuple(declared(system, "responses", "RESPONSES", Response, COMMON))


def ready_stacks() -> dict[str, ReadyStack]:
    """Return the stacks that ``perflab stack up`` can start, by name, without broken ones."""
    from perflab.trials.experiment import ReadyStack

    stacks: dict[str, ReadyStack] = {}
    for system in systems():
        with contextlib.suppress(ExperimentError):
            for stack in declared(system, "stacks", "STACKS", ReadyStack, ()):
                stacks.setdefault(stack.name, stack)
    return stacks


def declared(
    system: str, module: str, name: str, kind: type[Declared], otherwise: Sequence[Declared]
) -> Sequence[Declared]:
    """Return the tuple that a system's module declares.

    It is ``otherwise`` where there is no such module, or the system is not installed.

    Raises
    ------
    ExperimentError
        The module is wrong, or the declared objects are of another kind.
    """
    if system not in _folders() or not _file(system, module).is_file():
        return otherwise
    objects = getattr(_imported(system, module), name, None)
    if not isinstance(objects, (tuple, list)) or not all(
        isinstance(item, kind) for item in objects
    ):
        raise ExperimentError(f"{_file(system, module)}: {name} must be a tuple of {kind.__name__}")
    return objects


def _imported(system: str, module: str) -> ModuleType:
    package = package_of(system)
    try:
        return importlib.import_module(f"{package}.{module}")
    # A module may fail in any way when it is imported; the others must still be found.
    except (Exception, SystemExit) as error:
        raise ExperimentError(f"{_file(system, module)}: {_in_one_line(error)}") from None


def _modules() -> dict[str, str]:
    """Return the system of every module that should hold an experiment."""
    system_of_module: dict[str, str] = {}
    for system in systems():
        folder = folder_of(system) / "experiments"
        for module in pkgutil.iter_modules([str(folder)]):
            system_of_module.setdefault(module.name, system)
    return system_of_module


def _fault(declaration: object, name: str) -> str:
    """Return what is wrong with a module's EXPERIMENT, or an empty string."""
    from perflab.trials.experiment import Experiment
    from perflab.trials.run_parameters import RunParameters

    if declaration is None:
        return "has no EXPERIMENT; end it with EXPERIMENT = Experiment(...)"
    if not isinstance(declaration, Experiment):
        return f"its EXPERIMENT is a {type(declaration).__name__}, not an Experiment"
    if declaration.name != name:
        # Else two modules could have one name.
        return f"its EXPERIMENT is named '{declaration.name}'; name it like the file, '{name}'"
    model = declaration.parameters
    if not (isinstance(model, type) and issubclass(model, RunParameters)):
        return "its parameters are no class derived from RunParameters"
    return ""


def _file(system: str, module: str) -> Path:
    """Return the file of a system's module without importing a package that it is in."""
    place = folder_of(system).joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _in_one_line(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1:]
    text, place = str(error), f" (line {last[0].lineno} of {last[0].filename})" if last else ""
    if isinstance(error, SyntaxError):
        # What was called last is the importing machinery.
        text, place = error.msg, f" (line {error.lineno} of {error.filename})"
    return f"{type(error).__name__} when it is imported: {' '.join(text.split())}{place}"
