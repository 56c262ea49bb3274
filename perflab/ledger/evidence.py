"""What the chosen runs say: findings by contrast, and which views suit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from perflab.analysis.treatments.evaluation import Finding, evaluate
from perflab.analysis.treatments.joint import JointClaim
from perflab.figures import View
from perflab.ledger.declared import mismatch, plan_of, standing
from perflab.published import Answer, Row
from perflab.recordings import FREE_PARAMETERS, Selected
from perflab.reports.pictures import views_of

Parameters = tuple[tuple[str, str], ...]


@dataclass
class Witness:
    """A chosen run; it is read when something is asked of it, and once."""

    selected: Selected
    _judged: dict[str, Mapping[str, JointClaim]] = field(default_factory=dict)

    @cached_property
    def findings(self) -> dict[str, Finding]:
        """Findings by contrast: those that the experiment would ask today just so."""
        asked = standing(self.selected.run)
        found = evaluate(self.selected.run)
        return {each.contrast.name: each for each in found if each.contrast.name in asked}

    @cached_property
    def views(self) -> Mapping[str, View]:
        """The views that suit it, by name."""
        return {view.name: view for view in views_of(self.selected.run)}

    def judged(self, answer: Answer) -> JointClaim | None:
        """Return what the view that an answer names says of its claim; None where it is silent."""
        view = self.views.get(answer.view)
        if view is None or view.judging is None:
            return None
        if view.name not in self._judged:
            self._judged[view.name] = view.judging.of(self.selected.run)
        return self._judged[view.name].get(answer.claim)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.selected.run.run_id

    def is_as_declared(self, answer: Answer) -> bool:
        """Say whether it has the parameters that the answer names, and defaults for the rest."""
        own, wanted = self.selected.run.record.parameters, plan_of(answer).parameters
        names = (set(own) | set(wanted)) - set(FREE_PARAMETERS)
        return all(own.get(name) == wanted.get(name) for name in names)


@dataclass(frozen=True)
class Evidence:
    """All chosen runs, by experiment."""

    witnesses: dict[str, list[Witness]] = field(default_factory=dict)

    @staticmethod
    def of(chosen: Iterable[Selected]) -> Evidence:
        """Return the evidence of runs as :func:`perflab.chosen_runs.judged_runs` chooses them."""
        found: dict[str, list[Witness]] = {}
        for selected in chosen:
            found.setdefault(selected.run.record.experiment, []).append(Witness(selected))
        return Evidence(found)

    def judged(self, row: Row) -> list[tuple[Witness, JointClaim]]:
        """Return what views say of a row's claim, the run to go by first; otherwise as findings."""
        found = []
        for witness in self._by_weight(row.answer):
            claim = witness.judged(row.answer)
            if claim and not any(mismatch(row, each.contrast) for each in claim.findings):
                found.append((witness, claim))
        return found

    def findings(self, row: Row) -> list[tuple[Witness, list[Finding]]]:
        """Return what runs found of a row's contrasts, the run to go by first.

        That is one with the parameters that the answer names, then one with more complete blocks,
        then the newest. Runs of another estimand or load than the row's are not among them.
        """
        found = []
        for witness in self._by_weight(row.answer):
            covered = [
                finding
                for name, finding in witness.findings.items()
                if row.answer.covers(name) and not mismatch(row, finding.contrast)
            ]
            if covered:
                found.append((witness, covered))
        return found

    def seen(self, answer: Answer) -> list[Witness]:
        """Return the runs that a view suits, the one to go by first."""
        return [each for each in self._by_weight(answer) if answer.view in each.views]

    def _by_weight(self, answer: Answer) -> Sequence[Witness]:
        def weight(witness: Witness) -> tuple[bool, int, str]:
            run = witness.selected.run
            blocks = witness.selected.complete_blocks
            return witness.is_as_declared(answer), blocks, run.record.created_at

        return sorted(self.witnesses.get(answer.experiment, []), key=weight, reverse=True)
