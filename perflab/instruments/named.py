"""Instruments by name: as they are written down, and found again by the process that measures."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny

from perflab.errors import ExperimentError
from perflab.instruments.instrument import KIND, Instrument

# Modules elsewhere are no instruments: a plan is data, and data shall not choose what is run.
BELOW = "perflab."


def found(written: Any) -> Any:
    """Return the instrument that is written as ``{"kind": "module:Class", ...settings}``.

    Raises
    ------
    ExperimentError
        There is no such class below ``perflab``, or it is no instrument.
    """
    if not isinstance(written, Mapping):
        return written
    settings = {name: value for name, value in written.items() if name != KIND}
    return kind_named(str(written.get(KIND, ""))).model_validate(settings)


def kind_named(name: str) -> type[Instrument]:
    """Return a class of instruments by ``module:Class``; raises as :func:`found` does."""
    module, _, wanted = name.partition(":")
    if not module.startswith(BELOW) or not wanted.isidentifier():
        raise ExperimentError(
            f"instrument '{name}': give module:Class, and a module below '{BELOW[:-1]}'"
        )
    try:
        kind = getattr(importlib.import_module(module), wanted, None)
    except ImportError as error:
        raise ExperimentError(f"instrument '{name}': {error}") from None
    if not (isinstance(kind, type) and issubclass(kind, Instrument)):
        raise ExperimentError(f"instrument '{name}': '{wanted}' is no class of instruments there")
    return kind


NamedInstrument = Annotated[SerializeAsAny[Instrument], BeforeValidator(found)]
