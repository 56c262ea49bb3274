"""What a run says: of its contrasts, and of the claims that rules of its system judge."""

from __future__ import annotations

from contextlib import suppress

from perflab import systems
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.rules import Rule
from perflab.errors import ParameterError
from perflab.recordings import Run


def system_of(run: Run) -> str:
    """Return the system of a run; empty where it is not known."""
    system = run.record.system
    if not system:
        with suppress(ParameterError):
            system = systems.system_of(run.record.experiment)
    return system


def rules_of(system: str) -> tuple[Rule, ...]:
    """Return the RULES that a system declares; none where it is not installed or has none."""
    if system not in systems.systems():
        return ()
    return tuple(systems.declared(system, "rules", "RULES", Rule, ()))


def findings_of(run: Run) -> list[Finding]:
    """Return the findings of a run: of its contrasts, then by the rules of its system.

    Who answers a run asks once, and hands the findings on.
    """
    suiting = (rule for rule in rules_of(system_of(run)) if rule.suits(run))
    return [*evaluate(run), *(finding for rule in suiting for finding in rule.of(run))]
