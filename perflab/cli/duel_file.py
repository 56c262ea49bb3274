"""A duel written down: the TOML file that ``perflab duel`` takes, and what options add to it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perflab.errors import ParameterError

VARIANTS, LOAD = "variants", "load"


def read_duel(path: Path) -> dict[str, Any]:
    """Return the values that a file gives, by the names of parameters.

    ``[variants]`` holds NAME = "KIND:WHAT", ``[load]`` what the load has; the rest stands at the
    top. Relative places begin where the file lies, unless it names a folder.

    Raises
    ------
    ParameterError
        It cannot be read, or says something twice.
    """
    try:
        words = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError("perflab duel", [f"{path}: {error}"]) from None
    variants, load = words.pop(VARIANTS, {}), words.pop(LOAD, {})
    if not isinstance(variants, Mapping) or not isinstance(load, Mapping):
        raise ParameterError("perflab duel", [f"{path}: [variants] and [load] are tables"])
    twice = sorted(set(load) & set(words))
    if twice:
        problem = f"{path}: {', '.join(twice)} stands at the top and in [load]"
        raise ParameterError("perflab duel", [problem])
    found = {**words, **load}
    if variants:
        found[VARIANTS] = [f"{name}={text}" for name, text in variants.items()]
    place = path.resolve().parent
    found["folder"] = str(place / str(found.get("folder", "")))
    return found
