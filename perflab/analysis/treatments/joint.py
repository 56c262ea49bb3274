"""Claims of several parts, each of which must hold: one verdict from the verdicts of the parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflab.analysis.treatments.evaluation import Finding
from perflab.analysis.treatments.verdict import Outcome, Verdict, Way


@dataclass(frozen=True)
class JointClaim:
    """A claim with the findings about its parts (of most there is one), and its verdict."""

    findings: tuple[Finding, ...]
    verdict: Verdict


def joined(findings: Sequence[Finding]) -> JointClaim:
    """Return the verdict on a claim that holds where all its parts do.

    One part that goes the other way is enough against it; then one that cannot be tested leaves it
    open; it is shown where all parts are. Sizes are judged in claims of one part alone.
    """
    if len(findings) == 1:
        return JointClaim(tuple(findings), findings[0].verdict)
    verdicts = [finding.verdict for finding in findings]
    why = "; ".join(
        f"{each.contrast.name}: {each.verdict}, {each.verdict.reason}" for each in findings
    )
    return JointClaim(tuple(findings), Verdict(_outcome(verdicts), why))


def _outcome(verdicts: Sequence[Verdict]) -> Outcome:
    if any(each.direction is Way.OPPOSITE for each in verdicts):
        return Outcome.OPPOSITE
    for outcome in (Outcome.NOT_TESTABLE, Outcome.UNDECIDED):
        if any(each.outcome is outcome for each in verdicts):
            return outcome
    shown = all(each.direction is Way.SHOWN for each in verdicts)
    return Outcome.DIRECTION_SHOWN if shown else Outcome.DIRECTION_NOT_SHOWN
