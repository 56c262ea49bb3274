"""The published claims about the ladder, as contrasts between rungs.

Every request of the published baseline timed out, so its times are lower bounds: published sizes
are bounds, and so are measured ones over such a baseline.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from perflab.recordings import Contrast, published_value
from perflab.systems.registry.rungs import INSIDE, LAST, STUDY, inside
from perflab.trials.ladders import between, having

BASE = "step_0"
TABLE = "results table"
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
WORDS = {
    "total_duration_s": "total duration",
    "mean_ms": "mean",
    "longest_silence_ms": "silence",
    "phase_first_byte_p50_ms": "first byte",
    "memory_registry_bytes": "memory",
    "told_total_duration_s": "total duration as told",
}
_between = partial(between, words=WORDS)


def contrasts(rungs: Collection[str], as_published: bool) -> list[Contrast]:
    """Return every contrast whose rungs the run has.

    ``as_published`` says whether published sizes may be compared, given load and link.
    """
    all_contrasts = [
        *(_time(words, as_published) for words in TIMES),
        _successes(
            (LAST, BASE), "successful", "succeeded",
            "after the three fixes all 100 downloads succeed, and none before", as_published,
        ),
        *_claims(),
        *_beyond(),
        *_load_from(as_published),
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
    after, before = (_published(which, "successful") for which in ("optimised", "baseline"))
    published = {
        "published_difference": after - before if as_published else None,
        "published_direction": "greater",
        "source": "registry study, results table (100 against 0 of 100)",
    }
    return _difference(rungs, words, response, claim).model_copy(update=published)


def _time(words: str, as_published: bool) -> Contrast:
    response, measure = TIMES[words]
    after, before = (_published(which, measure) for which in ("optimised", "baseline"))
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


def _published(scenario: str, measure: str) -> float:
    return published_value(STUDY, TABLE, scenario, measure)


def _claims() -> list[Contrast]:
    """Return the claims in words, each with the effect that it implies."""
    return [
        *_def_and_loop(),
        _between(
            ("step_2", "step_1_32"), "total_duration_s", "smaller",
            "100 threads shorten what 32 threads limit", "registry study, claim 2",
        ),
        _between(
            ("pool_10", LAST), "phase_first_byte_p50_ms", "greater",
            "in a full pool requests wait for a connection: the store's first byte comes later",
            "registry study, claim 3",
        ),
        _difference(
            ("pool_10", LAST), "connections thrown away", "store_connections_discarded",
            "beyond the study: a pool of 10 throws connections away that one of 150 keeps",
        ),
        _between(
            ("pool_10", LAST), "total_duration_s", "greater",
            "in a full pool requests wait for a connection: all of them take longer",
            "registry study, claim 3 as time",
        ),
        _between(
            ("pool_200", "pool_100"), "total_duration_s", "smaller",
            "a pool of twice the concurrency shortens what one of just as many connections takes",
            "registry study, their rule for the pool",
        ),
        _between(
            (LAST, "one_client"), "mean_ms", "none",
            "only the network limits: one of 100 downloads takes no longer than one by itself",
            "registry study, claim 4",
        ),
    ]  # fmt: skip


def _def_and_loop() -> list[Contrast]:
    """Return claim 1, and the lab's own explanation beside it."""
    return [
        _between(
            ("plain_def", "step_1_32"), "longest_silence_ms", "greater",
            "a plain def holds up the event loop, which a call handed to a thread does not",
            "registry study, claim 1",
        ),
        _between(
            (BASE, "plain_def"), "longest_silence_ms", None,
            "beyond the study: a blocking call in async def holds up the event loop, against def",
        ),
        _between(
            ("step_1_32", "step_1"), "total_duration_s", None,
            "beyond the study: 32 threads against Python's own min(32, cores + 4)",
        ),
        _between(
            (LAST, "step_2"), "total_duration_s", None,
            "beyond the study: the last step (pool of 150, retries) by itself",
        ),
    ]  # fmt: skip


def _beyond() -> list[Contrast]:
    words = {"memory_registry_bytes": "memory", "total_duration_s": "total duration"}
    return [
        _between((name, LAST), response, None, f"beyond the study: {what}, {name} against step 3")
        for name in ("streamed", "async", "redirect", "ranged")
        for response, what in words.items()
    ]


def _load_from(as_published: bool) -> list[Contrast]:
    """Return the same rungs with the load from inside, as the service's own generator counts."""
    return [
        _successes(
            (inside(LAST), inside(BASE)), "successful as told", "told_succeeded",
            "with the load from inside all 100 downloads succeed after the three fixes, and none "
            "before, as the service's own generator counts", as_published,
        ),
        *(
            _difference(
                (inside(name), name), "successful as told", "told_succeeded",
                f"beyond the study: {name}, load from the service's own process against outside, "
                "as each generator counts",
            )
            for name in INSIDE
        ),
        *(
            _between(
                (inside(name), name), "told_total_duration_s", None,
                f"beyond the study: {name}, load from the service's own process against outside",
            )
            for name in INSIDE
        ),
    ]  # fmt: skip
