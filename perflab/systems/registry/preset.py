"""The published load of the registry study as parameters, from its rows, and what differs."""

from __future__ import annotations

from typing import Any

from perflab.display import plain
from perflab.experiments.experiment import RunParameters
from perflab.recordings import published_value

STUDY = "registry"
# Where the load and the system stand, by parameter.
PUBLISHED = {
    "models": ("system", "registry", "models"),
    "model_bytes": ("system", "Tiny-LLM", "size"),
    "clients": ("workload", "all", "clients"),
    "timeout_s": ("workload", "all", "timeout"),
}
# One download by itself takes 31 s over it: the study says 30 to 40.
BYTES_PER_S = 800_000.0
# What says how often, where and of which rungs something is measured, and not what.
NO_SETTINGS = frozenset({*RunParameters.model_fields, "preset", "sets", "rungs"})


def published_settings() -> dict[str, Any]:
    """Return the parameters that the preset sets."""
    numbers = {name: published_value(STUDY, *place) for name, place in PUBLISHED.items()}
    whole = ("models", "model_bytes", "clients")
    return {name: int(each) if name in whole else each for name, each in numbers.items()}


def differences(parameters: RunParameters) -> list[str]:
    """Return in what a run differs from the study, as sentences.

    What the study states must be as stated, the link as it is by default: else one could try
    settings until a size fits.
    """
    stated = published_settings()
    found = []
    for name, field in type(parameters).model_fields.items():
        value, wanted = getattr(parameters, name), stated.get(name, field.get_default())
        if name not in NO_SETTINGS and str(value) != str(wanted):
            whose = "published" if name in stated else "not published, by default"
            found.append(f"{name} is {plain(value)} ({whose}: {plain(wanted)})")
    return found
