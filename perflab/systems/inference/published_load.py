"""The published load and set-up of the inference service, and what differs from them."""

from __future__ import annotations

from typing import Any

from perflab.display import plain
from perflab.experiments.experiment import RunParameters
from perflab.recordings import published_value

STUDY = "inference"
# Where the published load and set-up stand, by parameter; other settings the study does not state.
PUBLISHED = {
    "requests": ("workload", "all", "requests"),
    "concurrency": ("workload", "all", "concurrency"),
    "workers": ("system", "driver study", "workers"),
    "pool_size": ("system", "driver study", "pool_size"),
    "round_trip_ms": ("system", "all", "added_round_trip"),
}
PER_CONNECTION = ("workload", "all", "requests_per_connection")
# What says how often and where something is measured, and not what.
NO_SETTINGS = frozenset({*RunParameters.model_fields, "preset", "warmup_requests"})


def as_published(parameters: RunParameters, **levels: Any) -> bool:
    """Say whether a published size may be compared; see :func:`differences`."""
    return not differences(parameters, **levels)


def differences(parameters: RunParameters, **levels: Any) -> list[str]:
    """Return in what a run differs from the study, as sentences.

    What the study states must be as stated. What it does not state (such as the pool's minimum)
    must be as it is by default: else one could try settings until the size fits.

    Parameters
    ----------
    levels
        The level of each parameter that is a factor.
    """
    stated = published_settings()
    found = []
    for name, field in type(parameters).model_fields.items():
        if name in NO_SETTINGS:
            continue
        default = field.get_default()
        if name in levels and isinstance(default, tuple):
            default = default[0]
        value, wanted = levels.get(name, getattr(parameters, name)), stated.get(name, default)
        if str(value) != str(wanted):
            whose = "published" if name in stated else "not published, by default"
            found.append(f"{name} is {plain(value)} ({whose}: {plain(wanted)})")
    return found


def published_settings() -> dict[str, Any]:
    """Return the parameters of the published load and set-up, from its rows."""
    numbers: dict[str, Any] = {
        name: published_value(STUDY, *place) for name, place in PUBLISHED.items()
    }
    for name in ("requests", "concurrency", "workers", "pool_size"):
        numbers[name] = int(numbers[name])
    reused = published_value(STUDY, *PER_CONNECTION) != 1
    return {**numbers, "connection": "keep_alive" if reused else "per_request"}


def published_rps(scenario: str) -> float:
    """Return the published throughput of a row of the results table, in requests per second."""
    return published_value(STUDY, "results table", scenario, "throughput")
