"""The rungs, published steps and further ones, and the published claims as contrasts.

Every request of the published baseline timed out, so its times are lower bounds: published sizes
are bounds, and so are measured ones over such a baseline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import starmap
from typing import Literal

from perflab.recordings import Contrast, published_value
from perflab.trials.ladders import Labelled, Row, between, having, of_sets

Handler = Literal["blocking", "threads", "to_thread", "executor", "async", "redirect", "ranged"]
Set = Literal["ladder", "beyond", "threads", "pools", "clients", "inside"]
LoadFrom = Literal["outside", "inside"]
# The handler ``ranged`` reads a model in as many parts, each in a thread.
RANGES = 4
# FastAPI runs plain defs in this many threads (anyio's default limiter).
FRAMEWORK_THREADS = 40


class Rung(Labelled):
    """One way to serve downloads: the settings of the service, and its load.

    ``executor_threads`` 0 is Python's own number. ``one_client`` leaves one client only.
    ``load_from``: the lab's clients download, or those of the service's own generator, on the
    event loop that serves them.
    """

    handler: Handler
    executor_threads: int = 0
    pool_connections: int = 10
    retries: int = 4
    retry_mode: Literal["legacy", "standard"] = "legacy"
    body: Literal["buffered", "streamed"] = "buffered"
    one_client: bool = False
    load_from: LoadFrom = "outside"

    @property
    def settings(self) -> dict[str, str | int | float]:
        """Return the settings of the service."""
        return self.model_dump(exclude={"label", "one_client", "load_from"})


def _step_3(label: str, handler: Handler = "executor", **changes: int | str | bool) -> Rung:
    """Return a rung with the settings of the last published step and some changes."""
    settings = {
        "executor_threads": 100, "pool_connections": 150, "retries": 3,
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
chosen = partial(of_sets, RUNGS, SETS)


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
    return max(1, threads // RANGES) if rung.handler == "ranged" else threads


STUDY = "registry"
BASE = "step_0"
RESULTS = "results table"
# Response, measure of the results table, and its words.
TIMES = {
    "total duration": ("total_duration_s", "total_duration"),
    "mean": ("mean_ms", "mean_latency"),
    "median": ("p50_ms", "median_latency"),
    "fastest": ("fastest_ms", "min_latency"),
    "slowest": ("max_ms", "max_latency"),
}
# The study says by how much these fell.
REDUCED = ("total duration", "mean")
TOTAL, SILENCE = "total_duration_s", "longest_silence_ms"
WORDS = {
    TOTAL: "total duration",
    "mean_ms": "mean",
    SILENCE: "silence",
    "phase_first_byte_p50_ms": "first byte",
    "memory_registry_bytes": "memory",
    "told_total_duration_s": "total duration as told",
}
_between = partial(between, words=WORDS)
CLAIMS: tuple[Row, ...] = (
    (("plain_def", "step_1_32"), SILENCE, "greater",
     "a plain def holds up the event loop, which a call handed to a thread does not",
     "registry study, claim 1"),
    ((BASE, "plain_def"), SILENCE, None,
     "beyond the study: a blocking call in async def holds up the event loop, against def", ""),
    (("step_1_32", "step_1"), TOTAL, None,
     "beyond the study: 32 threads against Python's own min(32, cores + 4)", ""),
    ((LAST, "step_2"), TOTAL, None,
     "beyond the study: the last step (pool of 150, retries) by itself", ""),
    (("step_2", "step_1_32"), TOTAL, "smaller",
     "100 threads shorten what 32 threads limit", "registry study, claim 2"),
    (("pool_10", LAST), "phase_first_byte_p50_ms", "greater",
     "in a full pool requests wait for a connection: the store's first byte comes later",
     "registry study, claim 3"),
    (("pool_10", LAST), TOTAL, "greater",
     "in a full pool requests wait for a connection: all of them take longer",
     "registry study, claim 3 as time"),
    (("pool_200", "pool_100"), TOTAL, "smaller",
     "a pool of twice the concurrency shortens what one of just as many connections takes",
     "registry study, their rule for the pool"),
    ((LAST, "one_client"), "mean_ms", "none",
     "only the network limits: one of 100 downloads takes no longer than one by itself",
     "registry study, claim 4"),
)  # fmt: skip


def contrasts(rungs: Collection[str], as_published: bool) -> list[Contrast]:
    """Return every contrast whose rungs the run has.

    ``as_published`` says whether published sizes may be compared, given load and link.
    """
    discarded = "beyond the study: a pool of 10 throws connections away that one of 150 keeps"
    all_contrasts = [
        *(_time(words, as_published) for words in TIMES),
        _successes(
            (LAST, BASE), "successful", "succeeded",
            "after the three fixes all 100 downloads succeed, and none before", as_published,
        ),
        *starmap(_between, CLAIMS),
        _difference(
            ("pool_10", LAST), "connections thrown away", "store_connections_discarded", discarded
        ),
        *_beyond(),
        *_contrasts_of_inside_load(as_published),
    ]  # fmt: skip
    return having(all_contrasts, rungs)


def _difference(rungs: tuple[str, str], words: str, response: str, claim: str) -> Contrast:
    """Return a contrast of numbers that may be 0, as a difference instead of a ratio."""
    after, before = rungs
    return Contrast(
        name=f"{after} against {before}, {words}", claim=claim, response=response,
        scale="difference", numerator={"rung": after}, denominator={"rung": before},
    )  # fmt: skip


def _successes(
    rungs: tuple[str, str], words: str, response: str, claim: str, as_published: bool
) -> Contrast:
    """Return the successes of the last step against those of the baseline."""
    after, before = _published("successful")
    published = {
        "published_difference": after - before if as_published else None,
        "published_direction": "greater",
        "source": "registry study, results table (100 against 0 of 100)",
    }
    return _difference(rungs, words, response, claim).model_copy(update=published)


def _time(words: str, as_published: bool) -> Contrast:
    response, measure = TIMES[words]
    after, before = _published(measure)
    return Contrast(
        name=f"{'the fixes' if words in REDUCED else f'{LAST} against {BASE}'}, {words}",
        claim=f"the three fixes shorten the {words} (a bound: the baseline timed out)",
        response=response,
        numerator={"rung": LAST},
        denominator={"rung": BASE},
        published_ratio=after / before if as_published else None,
        published_bound="at most" if as_published else "",
        published_direction="smaller",
        source=f"registry study, results table ({after:g} against at least {before:g})",
    )


def _published(measure: str) -> list[float]:
    """Return a measure after the fixes and before them."""
    scenarios = ("optimised", "baseline")
    return [published_value(STUDY, RESULTS, scenario, measure) for scenario in scenarios]


def _beyond() -> Iterator[Contrast]:
    for name in ("streamed", "async", "redirect", "ranged"):
        for response in ("memory_registry_bytes", TOTAL):
            claim = f"beyond the study: {WORDS[response]}, {name} against step 3"
            yield _between((name, LAST), response, None, claim)


def _contrasts_of_inside_load(as_published: bool) -> Iterator[Contrast]:
    """Yield contrasts of the load that the service's own process sends, as it counts it itself.

    After the last fix against before the first; then, for each rung, this load against the lab's.
    """
    words, response = "successful as told", "told_succeeded"
    claim = (
        "with the load from inside all 100 downloads succeed after the three fixes, and none "
        "before, as the service's own generator counts"
    )
    yield _successes((inside(LAST), inside(BASE)), words, response, claim, as_published)
    against = {
        name: f"beyond the study: {name}, load from the service's own process against outside"
        for name in INSIDE
    }
    for name, claim in against.items():
        claim = f"{claim}, as each generator counts"
        yield _difference((inside(name), name), words, response, claim)
    for name, claim in against.items():
        yield _between((inside(name), name), "told_total_duration_s", None, claim)
