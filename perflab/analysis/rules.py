"""A system's own rule for claims that are no contrast: fixed before anything was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perflab.analysis.evaluation import Finding
from perflab.recordings import Run


@dataclass(frozen=True)
class Rule:
    """A rule for the published ``claims``; ``of`` applies it to a run that it ``suits``.

    Each finding has the name of its claim.
    """

    claims: tuple[str, ...]
    suits: Callable[[Run], bool]
    of: Callable[[Run], Sequence[Finding]]
