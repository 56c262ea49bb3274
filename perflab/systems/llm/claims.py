"""The published claims about the two versions, as contrasts between rungs.

The study does not publish the model's speed, the length of answers and how fast users joined, so
only ratios between the versions are compared, under the published stress test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from perflab.recordings import Contrast, ContrastPair, published_value
from perflab.recordings.contrasts import Direction
from perflab.systems.llm.rungs import CAPACITY, KINDS, RESULTS, STUDY, VERSIONS, few_files
from perflab.trials.ladders import between, having

CPU, CHUNK_CPU, CORES = "server_cpu_us_per_answer", "server_cpu_us_per_chunk", "cpu_share_proxy"
FIRST, GAP, MEAN, RATE = "first_chunk_p50_ms", "chunk_gap_p99_ms", "mean_ms", "throughput_rps"
USERS, REQUESTS, SUCCESSES = "users_at_stop", "requests_begun", "successes_until_stop"
HELD = "users_held"
WORDS = {
    CPU: "proxy CPU per answer",
    CHUNK_CPU: "proxy CPU per chunk",
    CORES: "proxy CPU",
    FIRST: "first chunk",
    GAP: "p99 of gaps",
    MEAN: "mean",
    RATE: "answers per second",
    USERS: "users at failure",
    HELD: "users held",
    REQUESTS: "requests at failure",
    SUCCESSES: "successes at failure",
}
TABLE = "llm_proxy study, results table"
CYCLE = "the cycle gives every user one request per interval, whatever the version"
MISLED = {
    CORES: "without pacing a version that takes less CPU seems to take as much as before",
    MEAN: "beyond the study: pacing changes by how much the new version is faster",
}
_between = partial(between, words=WORDS)


def contrasts(rungs: Collection[str], limits: Iterable[int], as_published: bool) -> list[Contrast]:
    """Return every contrast whose rungs the run has.

    ``limits`` are the descriptors of the set ``limits``; ``as_published`` says whether the stress
    test is the published one, as far as the study states it.
    """
    levels = sorted(set(limits))
    by_limit = [contrast for limit in levels for contrast in _limit(limit, as_published)]
    all_contrasts = [*_kinds(), *_pacing(), *_capacity(), *by_limit, *_more_files(levels)]
    return having(all_contrasts, rungs)


def _kinds() -> Iterator[Contrast]:
    for kind in KINDS:
        old, new, raw = (f"{kind}_{version}" for version in ("old", "new", "raw"))
        yield _between(
            (new, old), MEAN, "smaller", f"the new version answers faster ({kind})",
            "llm_proxy study, effect speed (1 s; of which load is not stated)",
        )  # fmt: skip
        beyond = f"beyond the study: CPU of the proxy for an answer ({kind})"
        yield _between((new, old), CPU, None, f"{beyond}, new")
        yield _between((raw, old), CPU, None, f"{beyond}, raw bytes")
        if kind != "batch":
            yield _between(
                (new, old), FIRST, None, f"beyond the study: time to first chunk ({kind})"
            )
    for response in (CHUNK_CPU, GAP):
        yield _between(
            ("stream_new", "stream_old"), response, None,
            f"beyond the study: {WORDS[response]} (stream)",
        )  # fmt: skip


def _pacing() -> Iterator[Contrast]:
    """Yield both comparisons, and the factor by which the one without pacing misleads."""
    paced, unpaced = (("paced_new", "paced_old"), ("unpaced_new", "unpaced_old"))
    claim_2 = "llm_proxy study, claim 2"
    yield _between(
        paced, RATE, "none", "with a constant cycle both versions get the same requests", claim_2,
        set_by_load=CYCLE,
    )  # fmt: skip
    yield _between(
        unpaced, RATE, "greater", "without pacing the faster version gets more requests", claim_2
    )
    directions: dict[str, Direction | None] = {CORES: "greater", MEAN: None}
    for response, direction in directions.items():
        for pair, words in ((paced, "with"), (unpaced, "without")):
            claim = f"beyond the study: {WORDS[response]} {words} a constant cycle"
            yield _between(pair, response, None, claim)
        without = _between(unpaced, response, direction, MISLED[response], claim_2)
        with_cycle = ContrastPair(numerator={"rung": paced[0]}, denominator={"rung": paced[1]})
        name = f"pacing x version, {WORDS[response]}"
        yield without.model_copy(update={"name": name, "interaction": with_cycle})


def _capacity() -> Iterator[Contrast]:
    """Yield claim 1 by search. Users at failure are another estimand: no size is compared."""
    old, new, raw = (f"{CAPACITY}_{version}" for version in VERSIONS)
    yield _between(
        (new, old), HELD, "greater",
        "the new version has more capacity: users within the objectives",
        "llm_proxy study, claim 1",
    )  # fmt: skip
    yield _between(
        (raw, old), HELD, None, "beyond the study: users within the objectives, raw bytes"
    )


def _limit(limit: int, as_published: bool) -> Iterator[Contrast]:
    rungs = (few_files("new", limit), few_files("old", limit))
    published = {USERS: "users_at_failure", REQUESTS: "requests"}
    for response, measure in published.items():
        new, old = (published_value(STUDY, RESULTS, version, measure) for version in ("new", "old"))
        yield _between(
            rungs, response, "greater",
            f"the new version has more {WORDS[response]} ({limit} descriptors)",
            f"{TABLE} ({old:g} to {new:g}, one run each)",
            new / old if as_published else None,
        )  # fmt: skip
    yield _between(
        rungs, SUCCESSES, None, f"beyond the study: {WORDS[SUCCESSES]} ({limit} descriptors)"
    )


def _more_files(levels: list[int]) -> Iterator[Contrast]:
    """Yield, by version, users with the most descriptors over users with the fewest."""
    if len(levels) < 2:
        return
    for version in ("old", "new"):
        yield _between(
            (few_files(version, levels[-1]), few_files(version, levels[0])), USERS, "greater",
            f"servers failed because of limits on descriptors ({version})",
            "llm_proxy study, Windows limits",
        )  # fmt: skip
