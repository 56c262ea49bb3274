"""The rungs, each a version of the proxy and its load, and the published claims between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import starmap
from typing import Any, Literal

from perflab.recordings import Contrast, ContrastPair, published_value
from perflab.recordings.published_results import Direction
from perflab.trials.ladders import Labelled, Row, between, having

Version = Literal["old", "new", "raw"]
Kind = Literal["stream", "batch", "tools"]
Set = Literal["kinds", "unpaced", "limits", "capacity"]
# The proxy's setting of each version; the study has old and new, raw is beyond it.
MODES: dict[str, str] = {"old": "rebuild", "new": "pass", "raw": "raw"}
VERSIONS: tuple[Version, ...] = ("old", "new", "raw")
# The published versions.
BOTH: tuple[Version, ...] = ("old", "new")
KINDS: tuple[Kind, ...] = ("stream", "batch", "tools")
FEW_FILES = "files"


class Rung(Labelled):
    """A version of the proxy, and its load.

    ``is_paced`` keeps every user to a constant cycle; ``is_fast`` lets the model answer so fast
    that the proxy sets the pace. With ``max_files`` the proxy has so many descriptors (0: enough
    for all) while users ramp up to the stress test's number. With ``is_search`` a search for the
    most users that hold the objectives comes first.
    """

    version: Version
    kind: Kind = "stream"
    is_paced: bool = True
    is_fast: bool = False
    max_files: int = 0
    is_search: bool = False

    @property
    def is_ramp(self) -> bool:
        """Whether users ramp up until something fails."""
        return self.max_files > 0


def _rungs(name: str, label: str, versions: Iterable[Version], **settings: Any) -> dict[str, Rung]:
    return {
        f"{name}_{version}": Rung(label=f"{label}, {version}", version=version, **settings)
        for version in versions
    }


CAPACITY = "capacity"
# The rungs of the set ``limits`` depend on a parameter.
SETS: dict[str, dict[str, Rung]] = {
    "kinds": {
        **_rungs("stream", "stream", VERSIONS),
        **_rungs("batch", "batch", VERSIONS, kind="batch"),
        **_rungs("tools", "tools", VERSIONS, kind="tools"),
    },
    "unpaced": {
        **_rungs("paced", "fast model, constant cycle", BOTH, is_fast=True),
        **_rungs("unpaced", "fast model, no pacing", BOTH, is_fast=True, is_paced=False),
    },
    CAPACITY: _rungs(CAPACITY, "capacity by search", VERSIONS, is_search=True),
}


def few_files(version: str, limit: int, kind: Kind = "stream") -> str:
    """Return the name of the rung with ``limit`` descriptors."""
    return f"{FEW_FILES if kind == 'stream' else kind}_{limit}_{version}"


def _beside_streams(kind: Kind) -> list[str]:
    return [] if kind == "stream" else [kind]


def chosen(sets: Iterable[str], limits: Iterable[int], kind: Kind) -> dict[str, Rung]:
    """Return the rungs of all sets; ``limits`` are the descriptors of the set ``limits``.

    ``kind`` is that of the requests of this set.
    """
    names = set(sets)
    of_sets = (of_set for name, of_set in SETS.items() if name in names)
    rungs = {name: rung for of_set in of_sets for name, rung in of_set.items()}
    for limit in sorted(limits) if "limits" in names else ():
        label = ", ".join(["users ramp up", *_beside_streams(kind), f"{limit} descriptors"])
        name = few_files("", limit, kind).rstrip("_")
        rungs |= _rungs(name, label, BOTH, max_files=limit, kind=kind)
    return rungs


STUDY = "llm_proxy"
RESULTS = "results table"
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
SPEED = ("new against old", "response_time_difference")
CYCLE = "the cycle gives every user one request per interval, whatever the version"
MISLED = {
    CORES: "without pacing a version that takes less CPU seems to take as much as before",
    MEAN: "beyond the study: pacing changes by how much the new version is faster",
}
# Claim 1 by search. Users at failure are another estimand: no size is compared.
OF_CAPACITY: tuple[Row, ...] = (
    (("capacity_new", "capacity_old"), HELD, "greater",
     "the new version has more capacity: users within the objectives",
     "llm_proxy study, claim 1"),
    (("capacity_raw", "capacity_old"), HELD, None,
     "beyond the study: users within the objectives, raw bytes", ""),
)  # fmt: skip
_between = partial(between, words=WORDS)


def contrasts(
    rungs: Collection[str], limits: Iterable[int], kind: Kind, as_published: bool
) -> list[Contrast]:
    """Return every contrast whose rungs the run has.

    ``limits`` are the descriptors of the set ``limits``, and ``kind`` is that of its requests;
    ``as_published`` says whether the stress test is the published one, as far as the study states
    it.
    """
    levels = sorted(limits)
    by_limit = [contrast for limit in levels for contrast in _limit(limit, kind, as_published)]
    all_contrasts = [
        *map(_faster, KINDS),
        *starmap(_between, _kinds()),
        *_pacing(),
        *starmap(_between, OF_CAPACITY),
        *by_limit,
        *starmap(_between, _more_files(levels, kind)),
    ]
    return having(all_contrasts, rungs)


def _faster(kind: str) -> Contrast:
    """Return the contrast of the mean; the published size is a time, not a ratio."""
    difference_s = published_value(STUDY, "published effects", *SPEED)
    claim = f"the new version answers {-difference_s:g} s faster ({kind})"
    source = "llm_proxy study, effect speed (of which load is not stated)"
    contrast = _between((f"{kind}_new", f"{kind}_old"), MEAN, "smaller", claim, source)
    size = {"scale": "difference", "published_difference": 1e3 * difference_s}
    return contrast.model_copy(update=size)


def _kinds() -> Iterator[Row]:
    for kind in KINDS:
        pair, raw = (f"{kind}_new", f"{kind}_old"), (f"{kind}_raw", f"{kind}_old")
        beyond = f"beyond the study: CPU of the proxy for an answer ({kind})"
        yield pair, CPU, None, f"{beyond}, new", ""
        yield raw, CPU, None, f"{beyond}, raw bytes", ""
        if kind != "batch":
            yield pair, FIRST, None, f"beyond the study: time to first chunk ({kind})", ""
    for response in (CHUNK_CPU, GAP):
        claim = f"beyond the study: {WORDS[response]} (stream)"
        yield ("stream_new", "stream_old"), response, None, claim, ""


def _pacing() -> Iterator[Contrast]:
    """Yield both comparisons, and the factor by which the one without pacing misleads."""
    paced, unpaced = ("paced_new", "paced_old"), ("unpaced_new", "unpaced_old")
    claim_2 = "llm_proxy study, claim 2"
    claim = "with a constant cycle both versions get the same requests"
    yield _between(paced, RATE, "none", claim, claim_2, set_by_load=CYCLE)
    claim = "without pacing the faster version gets more requests"
    yield _between(unpaced, RATE, "greater", claim, claim_2)
    directions: dict[str, Direction | None] = {CORES: "greater", MEAN: None}
    for response, direction in directions.items():
        for pair, words in ((paced, "with"), (unpaced, "without")):
            claim = f"beyond the study: {WORDS[response]} {words} a constant cycle"
            yield _between(pair, response, None, claim)
        without = _between(unpaced, response, direction, MISLED[response], claim_2)
        with_cycle = ContrastPair(numerator={"rung": paced[0]}, denominator={"rung": paced[1]})
        name = f"pacing x version, {WORDS[response]}"
        yield without.model_copy(update={"name": name, "interaction": with_cycle})


def _limit(limit: int, kind: Kind, as_published: bool) -> Iterator[Contrast]:
    rungs = (few_files("new", limit, kind), few_files("old", limit, kind))
    place = ", ".join([*_beside_streams(kind), f"{limit} descriptors"])
    published = {USERS: "users_at_failure", REQUESTS: "requests"}
    for response, measure in published.items():
        new, old = (published_value(STUDY, RESULTS, version, measure) for version in ("new", "old"))
        claim = f"the new version has more {WORDS[response]} ({place})"
        source = f"{TABLE} ({old:g} to {new:g}, one run each)"
        ratio = new / old if as_published else None
        yield _between(rungs, response, "greater", claim, source, ratio)
    claim = f"beyond the study: {WORDS[SUCCESSES]} ({place})"
    yield _between(rungs, SUCCESSES, None, claim)


def _more_files(levels: list[int], kind: Kind) -> Iterator[Row]:
    """Yield, by version, users with the most descriptors over users with the fewest."""
    for version in BOTH if len(levels) > 1 else ():
        pair = (few_files(version, levels[-1], kind), few_files(version, levels[0], kind))
        claim = f"servers failed because of limits on descriptors ({version})"
        yield pair, USERS, "greater", claim, "llm_proxy study, Windows limits"
