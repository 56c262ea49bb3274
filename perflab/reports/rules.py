"""What a run says: of its contrasts, and of the claims that rules of its system judge."""

from __future__ import annotations

from collections.abc import Sequence

from perflab import systems
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.rules import Rule
from perflab.recordings import Run


def rules_of(system: str) -> Sequence[Rule]:
    """Return the RULES that a system declares; none where it is not installed or has none."""
    return systems.declared(system, "rules", "RULES", Rule, ())


def findings_of(run: Run) -> list[Finding]:
    """Return the findings of a run: of its contrasts, then by the rules of its system.

    Who answers a run asks once, and hands the findings on.
    """
    suiting = (rule for rule in rules_of(run.record.system) if rule.suits(run))
    return [*evaluate(run), *(finding for rule in suiting for finding in rule.of(run))]
