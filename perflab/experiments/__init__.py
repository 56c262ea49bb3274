"""The experiments: one module each, found by its name."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import traceback

from perflab.errors import ExperimentError, ParameterError
from perflab.experiments.experiment import Experiment, RunParameters
from perflab.parameters import did_you_mean


def names() -> list[str]:
    """Return the names of all experiments: the modules of this package, broken ones too."""
    # What several experiments share is a package, or one of these modules.
    modules = (module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return sorted(name for name in modules if name not in ("experiment", "inference_service"))


def experiment(name: str) -> Experiment:
    """Return an experiment by name.

    Raises
    ------
    ParameterError
        There is none of that name; the message proposes the nearest.
    ExperimentError
        Its module is wrong; the message names the file and the fault.
    """
    known = names()
    if name not in known:
        raise ParameterError(
            "experiment",
            [f"no experiment '{name}'{did_you_mean(name, known)}; there are: {', '.join(known)}"],
        )
    place = f"{__name__}.{name}"
    try:
        found = getattr(importlib.import_module(place), "EXPERIMENT", None)
    # A module may do anything when it is imported, and the others shall still be found.
    except (Exception, SystemExit) as error:
        raise ExperimentError(f"{_file(place)}: {_in_one_line(error)}") from None
    fault = _fault(found, name)
    if fault:
        raise ExperimentError(f"{_file(place)}: {fault}")
    assert isinstance(found, Experiment)
    return found


def _fault(found: object, name: str) -> str:
    """Return what is wrong with a module's EXPERIMENT, or an empty string."""
    if found is None:
        return "has no EXPERIMENT; end it with EXPERIMENT = Experiment(...)"
    if not isinstance(found, Experiment):
        return f"its EXPERIMENT is a {type(found).__name__}, not an Experiment"
    if found.name != name:
        # Two modules would answer to one name.
        return f"its EXPERIMENT is named '{found.name}'; name it like the file, '{name}'"
    model = found.parameters
    if not (isinstance(model, type) and issubclass(model, RunParameters)):
        return "its parameters are no class derived from RunParameters"
    return ""


def _file(place: str) -> str:
    spec = importlib.util.find_spec(place)
    return str(spec.origin) if spec else place


def _in_one_line(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1:]
    line = f" (line {last[0].lineno} of {last[0].filename})" if last else ""
    words = " ".join(str(error).split())
    return f"{type(error).__name__} when it is imported: {words}{line}"


__all__ = ["Experiment", "experiment", "names"]
