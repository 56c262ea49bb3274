"""The rungs: a version of the proxy and the load that it gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from perflab.parameters import Parameters
from perflab.recordings import published_value

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


class Rung(Parameters):
    """A version of the proxy, and its load.

    ``is_paced`` keeps every user to a constant cycle; ``is_fast`` lets the model answer so fast
    that the proxy sets the pace. With ``max_files`` the proxy has so many descriptors (0: enough
    for all) while users ramp up to the stress test's number. With ``is_search`` a search for the
    most users that hold the objectives comes first.
    """

    label: str
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


def few_files(version: str, limit: int) -> str:
    """Return the name of the rung with ``limit`` descriptors."""
    return f"{FEW_FILES}_{limit}_{version}"


def chosen(sets: Iterable[str], limits: Iterable[int]) -> dict[str, Rung]:
    """Return the rungs of all sets, each once, in the order of this module.

    Parameters
    ----------
    limits : iterable of int
        Descriptors of the set ``limits``.
    """
    names = set(sets)
    rungs: dict[str, Rung] = {}
    for name, of_set in SETS.items():
        rungs |= of_set if name in names else {}
    for limit in sorted(set(limits)) if "limits" in names else ():
        label = f"users ramp up, {limit} descriptors"
        rungs |= _rungs(f"{FEW_FILES}_{limit}", label, BOTH, max_files=limit)
    return rungs


STUDY = "llm_proxy"
METHOD, RESULTS = "method", "results table"
# The published row of each parameter; the model's speed and the answers' length have none.
PUBLISHED = {
    "users": (METHOD, "stream", "users"),
    "interval_s": (METHOD, "stream", "interval"),
    "chunks_for_success": (METHOD, "stream", "chunks_for_success"),
    "tool_calls": ("system", "tools requests", "tool_calls"),
    "stress_users": (RESULTS, "both", "stress_test_users"),
    "failures": (METHOD, "early end", "failures"),
}
WHOLE = ("users", "chunks_for_success", "tool_calls", "stress_users", "failures")
MINUTE_S = 60.0
# An answer takes about 10 s, so that streams are under way half of a 20 s cycle.
ANSWER = {"tokens": 200, "token_rate": 20.0, "first_token_ms": 300.0}


def published_settings() -> dict[str, Any]:
    """Return the parameters that the preset sets."""
    settings: dict[str, Any] = {
        name: published_value(STUDY, *place) for name, place in PUBLISHED.items()
    }
    settings |= {name: int(settings[name]) for name in WHOLE}
    length_s = MINUTE_S * published_value(STUDY, METHOD, "all", "run_duration")
    # The warm-up is one cycle, in which the users join.
    return {
        **settings,
        **ANSWER,
        "warmup_s": settings["interval_s"],
        "duration_s": length_s - settings["interval_s"],
        "ramp_s": length_s,
        "limits": (512,),
        "timeout_s": 60.0,
        # Three cycles of every user; the first token is due after 300 ms.
        "probe_s": 3 * settings["interval_s"],
        "objectives": ("ttft_p95<600ms", "gap_p99<200ms"),
    }
