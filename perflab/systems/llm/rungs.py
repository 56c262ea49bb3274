"""The rungs: a version of the proxy and the load that it gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from perflab.parameters import Parameters

Version = Literal["old", "new", "raw"]
Kind = Literal["stream", "batch", "tools"]
Set = Literal["kinds", "unpaced", "limits", "capacity"]
# What the study calls old and new, as the proxy's setting; raw is beyond it.
MODES: dict[str, str] = {"old": "rebuild", "new": "pass", "raw": "raw"}
VERSIONS: tuple[Version, ...] = ("old", "new", "raw")
# The two that were published.
BOTH: tuple[Version, ...] = ("old", "new")
KINDS: tuple[Kind, ...] = ("stream", "batch", "tools")
FEW_FILES = "files"


class Rung(Parameters):
    """A version of the proxy, and its load.

    ``is_paced`` keeps every user to a constant cycle; ``is_fast`` lets the model answer so fast
    that the proxy sets the pace. With ``max_files`` users ramp up to the stress test's number while
    the proxy has so many descriptors (0: enough for all). With ``is_search`` the most users that
    hold the objectives are searched first.
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


def _rungs(name: str, label: str, versions: Iterable[Version], **own: Any) -> dict[str, Rung]:
    return {
        f"{name}_{version}": Rung(label=f"{label}, {version}", version=version, **own)
        for version in versions
    }


CAPACITY = "capacity"
# Those of the set ``limits`` depend on a parameter.
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
    """Return the name of the rung with so many descriptors."""
    return f"{FEW_FILES}_{limit}_{version}"


def chosen(sets: Iterable[str], limits: Iterable[int]) -> dict[str, Rung]:
    """Return the rungs of all sets, each once, in the order in which they stand above.

    Parameters
    ----------
    limits : iterable of int
        Descriptors of the set ``limits``.
    """
    wanted = set(sets)
    rungs: dict[str, Rung] = {}
    for name, of_set in SETS.items():
        rungs |= of_set if name in wanted else {}
    for limit in sorted(set(limits)) if "limits" in wanted else ():
        label = f"users ramp up, {limit} descriptors"
        rungs |= _rungs(f"{FEW_FILES}_{limit}", label, BOTH, max_files=limit)
    return rungs
