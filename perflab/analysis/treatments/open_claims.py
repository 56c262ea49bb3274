"""Which contrasts of a run are not decided yet, so that one more block could tell something."""

from __future__ import annotations

from perflab.analysis.treatments.decision import Kind
from perflab.analysis.treatments.evaluation import Finding, evaluate
from perflab.analysis.treatments.verdict import Outcome
from perflab.recordings import Contrast, Run

# In these a part that was claimed, the direction or the size, is neither shown nor contradicted.
OPEN = (Outcome.UNDECIDED, Outcome.SIZE_UNDECIDED, Outcome.DIRECTION_NOT_SHOWN)


def undecided_contrasts(run: Run) -> tuple[str, ...]:
    """Return the names of the contrasts that the blocks so far leave undecided.

    A published claim is decided where its verdict is: direction and size, whichever were claimed. A
    ratio of which nothing was published is decided where it is different, or equivalent. A
    difference in a unit of which nothing was published, and what cannot be tested or is set by the
    load, have nothing to decide.
    """
    return tuple(found.contrast.name for found in undecided_findings(run))


def undecided_findings(run: Run) -> list[Finding]:
    """Return the findings of a run that one more block could tell something of."""
    return [found for found in evaluate(run) if _is_open(found)]


def can_be_decided(contrast: Contrast) -> bool:
    """Say whether measuring can decide anything about a contrast."""
    if contrast.not_testable or contrast.set_by_load:
        return False
    sizes = (contrast.published_direction, contrast.published_ratio, contrast.published_difference)
    return contrast.scale == "ratio" or any(each is not None for each in sizes)


def _is_open(found: Finding) -> bool:
    if not can_be_decided(found.contrast):
        return False
    if found.verdict.outcome is Outcome.UNPUBLISHED:
        return found.decision is None or found.decision.kind is Kind.UNDECIDED
    return found.verdict.outcome in OPEN
