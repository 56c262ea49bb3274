"""The rungs (``rungs.csv``), each a version of the proxy and its load, and the claims between them.

Contrasts are rows of ``contrasts.csv``; those of the set ``limits`` depend on parameters and are
made from the rows of ``limits.csv``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Literal

from perflab.recordings import Contrast, published_value
from perflab.recordings.contrast_rows import ContrastRow
from perflab.recordings.typed_rows import rows_of
from perflab.trials.ladders import Labelled, having, read_ladder

Version = Literal["old", "new", "raw"]
Kind = Literal["stream", "batch", "tools"]
# The proxy's setting of each version; the study has old and new, raw is beyond it.
MODES: dict[str, str] = {"old": "rebuild", "new": "pass", "raw": "raw"}
VERSIONS: tuple[Version, ...] = ("old", "new", "raw")
# The published versions.
BOTH: tuple[Version, ...] = ("old", "new")
LIMITS, FEW_FILES = "limits", "files"
HERE = Path(__file__).parent
CONTRASTS = rows_of(HERE / "contrasts.csv", ContrastRow)
# Four for each limit; the last for each version, of the most descriptors over the fewest.
*OF_LIMIT, MORE_FILES = rows_of(HERE / "limits.csv", ContrastRow)
STUDY = "llm_proxy"
RESULTS = "results table"
USERS = "users_at_stop"
# The only published difference, that of the stress test; it is in seconds.
SPEED = ("published effects", "new against old", "response_time_difference")


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


TABLE = read_ladder(HERE / "rungs.csv", Rung)
# The rungs of the set ``limits`` depend on parameters.
LADDER = replace(TABLE, sets={**TABLE.sets, LIMITS: ()})


def few_files(version: str, limit: int, kind: Kind = "stream") -> str:
    """Return the name of the rung with ``limit`` descriptors."""
    return f"{FEW_FILES if kind == 'stream' else kind}_{limit}_{version}"


def chosen(sets: Collection[str], limits: Iterable[int], kind: Kind) -> dict[str, Rung]:
    """Return the rungs of all sets; ``limits`` are the descriptors of the set ``limits``.

    ``kind`` is that of the requests of this set.
    """
    rungs = LADDER.chosen(sets)
    for limit, version in product(sorted(limits) if LIMITS in sets else (), BOTH):
        label = f"users ramp up, {_place(limit, kind)}, {version}"
        rungs[few_files(version, limit, kind)] = Rung(
            label=label, version=version, max_files=limit, kind=kind
        )
    return rungs


def _place(limit: int, kind: Kind) -> str:
    return f"{'' if kind == 'stream' else f'{kind}, '}{limit} descriptors"


def contrasts(
    rungs: Collection[str], limits: Collection[int], kind: Kind, sized_limits: Collection[int]
) -> list[Contrast]:
    """Return every contrast whose rungs the run has.

    ``limits`` are the descriptors of the set ``limits``, and ``kind`` is that of its requests;
    at ``sized_limits`` the stress test is the published one, and contrasts have published sizes.
    """
    fixed = (row.contrast(STUDY) for row in CONTRASTS)
    of_limits = (
        _at_limit(row, limit, kind, limit in sized_limits)
        for limit, row in product(sorted(limits), OF_LIMIT)
    )
    more_files = (
        MORE_FILES.contrast(
            STUDY,
            most=few_files(version, max(limits), kind),
            few=few_files(version, min(limits), kind),
            version=version,
        )
        for version in (BOTH if len(limits) > 1 else ())
    )
    return having([*fixed, *of_limits, *more_files], rungs)


def _at_limit(row: ContrastRow, limit: int, kind: Kind, sized: bool) -> Contrast:
    few = few_files("", limit, kind).rstrip("_")
    contrast = row.contrast(STUDY, sized=sized, few=few, place=_place(limit, kind))
    if not sized or contrast.scale != "difference":
        return contrast
    difference_ms = 1e3 * published_value(STUDY, *SPEED)
    return contrast.model_copy(update={"published_difference": difference_ms})
