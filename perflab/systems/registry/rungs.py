"""The rungs: the published ladder of bottlenecks, and rungs that the study does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from perflab.parameters import Parameters
from perflab.recordings import published_value
from perflab.recordings.display import plain
from perflab.trials.experiment import RunParameters

Handler = Literal["blocking", "threads", "to_thread", "executor", "async", "redirect", "ranged"]
Set = Literal["ladder", "beyond", "threads", "pools", "clients", "inside"]
LoadFrom = Literal["outside", "inside"]
# FastAPI runs plain defs in this many threads (anyio's default limiter).
FRAMEWORK_THREADS = 40


class Rung(Parameters):
    """One way to serve downloads: the settings of the service, and its load.

    ``executor_threads`` 0 is Python's own number. ``one_client`` leaves one client only.
    ``load_from``: the lab's clients download, or those of the service's own health page, on the
    event loop that serves them.
    """

    label: str
    handler: Handler
    executor_threads: int = 0
    pool_connections: int = 10
    retry_attempts: int = 5
    retry_mode: Literal["legacy", "standard"] = "legacy"
    body: Literal["buffered", "streamed"] = "buffered"
    range_parts: int = 4
    one_client: bool = False
    load_from: LoadFrom = "outside"

    @property
    def settings(self) -> dict[str, str | int | float]:
        """Return the settings of the service."""
        return self.model_dump(exclude={"label", "one_client", "load_from"})


def _step_3(label: str, handler: Handler = "executor", **changes: int | str | bool) -> Rung:
    """Return a rung with the settings of the last published step and some changes."""
    settings = {
        "executor_threads": 100, "pool_connections": 150, "retry_attempts": 3,
        "retry_mode": "standard", **changes,
    }  # fmt: skip
    return Rung.model_validate({"label": label, "handler": handler, **settings})


OWN_THREADS = (6, 10, 20, 32, 50)
OWN_POOLS = (10, 50, 100, 200)
LAST = "step_3"
INSIDE = ("step_0", "plain_def", "step_1", LAST)


def inside(name: str) -> str:
    """Return the name of a rung with its load from inside the service."""
    return f"{name}_inside"


def _with_inside(rungs: Mapping[str, Rung]) -> dict[str, Rung]:
    """Return rungs, and after each rung in ``INSIDE`` the same one with the load from inside."""
    both = {}
    for name, rung in rungs.items():
        both[name] = rung
        if name in INSIDE:
            label = f"{rung.label}, load from inside"
            both[inside(name)] = rung.model_copy(update={"label": label, "load_from": "inside"})
    return both


_OUTSIDE: dict[str, Rung] = {
    "step_0": Rung(label="step 0: blocking call in async def", handler="blocking"),
    "plain_def": Rung(label="plain def (FastAPI's 40 threads)", handler="threads"),
    "step_1": Rung(label="step 1: to_thread, Python's own executor", handler="to_thread"),
    "step_1_32": Rung(
        label="step 1: to_thread, 32 threads", handler="to_thread", executor_threads=32
    ),
    "step_2": Rung(
        label="step 2: own executor, 100 threads", handler="executor", executor_threads=100
    ),
    LAST: _step_3("step 3: pool of 150, 3 retries"),
    "streamed": _step_3("step 3, streamed in chunks", body="streamed"),
    "async": _step_3("async client, buffered", "async", executor_threads=0),
    "redirect": _step_3("redirect to the store", "redirect", executor_threads=0),
    "ranged": _step_3(
        "4 ranges side by side", "ranged", executor_threads=400, pool_connections=400
    ),
    **{
        f"threads_{n}": _step_3(f"{n} threads, pool of 150", executor_threads=n)
        for n in OWN_THREADS
    },
    **{f"pool_{n}": _step_3(f"100 threads, pool of {n}", pool_connections=n) for n in OWN_POOLS},
    "one_client": _step_3("step 3, one client", one_client=True),
}
RUNGS = _with_inside(_OUTSIDE)
SETS: dict[str, tuple[str, ...]] = {
    "ladder": ("step_0", "plain_def", "step_1", "step_1_32", "step_2", LAST),
    "beyond": (LAST, "streamed", "async", "redirect", "ranged"),
    "threads": (*(f"threads_{n}" for n in OWN_THREADS), LAST),
    "pools": (*(f"pool_{n}" for n in OWN_POOLS), LAST),
    "clients": (LAST, "one_client"),
    "inside": (*INSIDE, *map(inside, INSIDE)),
}


def chosen(sets: Iterable[str]) -> dict[str, Rung]:
    """Return the rungs of all sets, each once, in the order of ``RUNGS``."""
    names = {name for chosen_set in sets for name in SETS[chosen_set]}
    return {name: rung for name, rung in RUNGS.items() if name in names}


def lanes(rung: Rung, cores: int) -> int | None:
    """Return how many downloads a rung lets run at a time, or None if it has no limit.

    Python's own executor has min(32, cores + 4) threads, by the cores that Python counts.
    """
    if rung.handler == "blocking":
        return 1
    if rung.handler == "threads":
        return FRAMEWORK_THREADS
    if rung.handler in ("async", "redirect"):
        return None
    threads = rung.executor_threads or min(32, cores + 4)
    return max(1, threads // rung.range_parts) if rung.handler == "ranged" else threads


STUDY = "registry"
# The published row of each parameter of load and system.
PUBLISHED = {
    "models": ("system", "registry", "models"),
    "model_bytes": ("system", "Tiny-LLM", "size"),
    "clients": ("workload", "all", "clients"),
    "timeout_s": ("workload", "all", "timeout"),
}
# One download by itself takes 31 s at this rate; the study says 30 to 40.
BYTES_PER_S = 800_000.0
# Parameters that say how often, where and on which rungs something is measured, and not what.
NO_SETTINGS = frozenset({*RunParameters.model_fields, "preset", "sets", "rungs"})


def published_settings() -> dict[str, Any]:
    """Return the parameters that the preset sets."""
    numbers = {name: published_value(STUDY, *place) for name, place in PUBLISHED.items()}
    counts = ("models", "model_bytes", "clients")
    return {name: int(value) if name in counts else value for name, value in numbers.items()}


def differences(parameters: RunParameters) -> list[str]:
    """Return the differences of a run from the study, as sentences.

    A parameter that the study states must have the stated value, and the link its default, because
    one could else try settings until a size fits.
    """
    stated = published_settings()
    texts = []
    for name, field in type(parameters).model_fields.items():
        value, expected = getattr(parameters, name), stated.get(name, field.get_default())
        if name not in NO_SETTINGS and str(value) != str(expected):
            whose = "published" if name in stated else "not published, by default"
            texts.append(f"{name} is {plain(value)} ({whose}: {plain(expected)})")
    return texts
