"""The class of users that a script names, in a file or a module of whoever wrote it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from perflab.errors import ParameterError
from perflab.load.users import User, actions


def find(script: str) -> type[User]:
    """Return the class that ``path/to/file.py:Class`` or ``module:Class`` names.

    Raises
    ------
    ParameterError
        It cannot be found or imported, or is not a User with actions.
    """
    place, _, name = script.rpartition(":")
    if not place or not name:
        raise ParameterError("script", [f"'{script}' is not FILE.py:Class or module:Class"])
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
            if spec is None or spec.loader is None:
                raise ImportError(f"cannot load {place}")
            module = importlib.util.module_from_spec(spec)
            sys.modules[Path(place).stem] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
    except Exception as error:  # whatever the user's module raises is told to the user
        raise ParameterError("script", [f"{place}: {type(error).__name__}: {error}"]) from None
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, User)):
        raise ParameterError("script", [f"{place} has no class {name} that is a perflab User"])
    actions(found)
    return found
