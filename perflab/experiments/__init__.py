"""The experiments: one module each, found by its name."""

from __future__ import annotations

import importlib
import pkgutil

from perflab.errors import ParameterError
from perflab.experiments.experiment import Experiment
from perflab.parameters import did_you_mean


def names() -> list[str]:
    """Return the names of all experiments (modules of this package with an EXPERIMENT)."""
    # What several experiments share is a package, or one of these modules.
    modules = (module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return sorted(name for name in modules if name not in ("experiment", "inference_service"))


def experiment(name: str) -> Experiment:
    """Return an experiment by name.

    Raises
    ------
    ParameterError
        There is none of that name; the message proposes the nearest.
    """
    known = names()
    if name not in known:
        raise ParameterError(
            "experiment",
            [f"no experiment '{name}'{did_you_mean(name, known)}; there are: {', '.join(known)}"],
        )
    found: Experiment = importlib.import_module(f"{__name__}.{name}").EXPERIMENT
    return found


__all__ = ["Experiment", "experiment", "names"]
