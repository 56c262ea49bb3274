"""What the chosen runs say of published rows: verdicts by run, and which views suit."""

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


@dataclass(frozen=True)
class Told:
    """What a run says of a row."""

    run_id: str
    findings: Sequence[Finding]
    outcome: str
    why: str


@dataclass
class Witness:
    """A chosen run; it is read when something is asked of it, and once."""

    selected: Selected
    _claims: dict[str, Mapping[str, JointClaim]] = field(default_factory=dict)

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings on what the experiment would ask today just so."""
        asked = standing(self.selected.run)
        return [each for each in evaluate(self.selected.run) if each.contrast.name in asked]

    @cached_property
    def views(self) -> Mapping[str, View]:
        """The views that suit it, by name."""
        return {view.name: view for view in views_of(self.selected.run)}

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.selected.run.run_id

    def of_contrasts(self, row: Row) -> Told | None:
        """Return what it found of a row's contrasts; None where it has none of them.

        Those of another estimand or load than the row's are not among them.
        """
        found = [
            each
            for each in self.findings
            if row.answer.covers(each.contrast.name) and not mismatch(row, each.contrast)
        ]
        if not found:
            return None
        words = dict.fromkeys(str(each.verdict) for each in found)
        outcome = next(iter(words)) if len(words) == 1 else f"mixed: {', '.join(words)}"
        whys = [
            why
            for each in found
            for why in (each.verdict.reason, "" if each.effect else each.absent)
            if why
        ]
        return Told(self.run_id, found, outcome, "; ".join(dict.fromkeys(whys)))

    def of_claim(self, row: Row) -> Told | None:
        """Return what the view that a row's answer names says of its claim; None if nothing."""
        view = self.views.get(row.answer.view)
        if view is None or view.judging is None:
            return None
        if view.name not in self._claims:
            self._claims[view.name] = view.judging.of(self.selected.run)
        claim = self._claims[view.name].get(row.answer.claim)
        if claim is None or any(mismatch(row, each.contrast) for each in claim.findings):
            return None
        return Told(self.run_id, claim.findings, str(claim.verdict), claim.verdict.reason)

    def weight(self, answer: Answer) -> tuple[bool, int, str]:
        """Return what decides which of several runs to go by: the largest one.

        A run with the parameters that the answer names, and defaults for the rest, goes before one
        with more complete blocks, and that before the newest.
        """
        record = self.selected.run.record
        own, wanted = record.parameters, plan_of(answer).parameters
        names = (set(own) | set(wanted)) - set(FREE_PARAMETERS)
        is_as_declared = all(own.get(name) == wanted.get(name) for name in names)
        return is_as_declared, self.selected.complete_blocks, record.created_at


class Evidence:
    """All chosen runs, as :func:`perflab.chosen_runs.judged_runs` chooses them."""

    def __init__(self, chosen: Iterable[Selected]) -> None:
        self._witnesses: dict[str, list[Witness]] = {}
        for selected in chosen:
            own = self._witnesses.setdefault(selected.run.record.experiment, [])
            own.append(Witness(selected))

    def told(self, row: Row) -> list[Told]:
        """Return what runs say of a row's contrasts, or of its claim; the run to go by first."""
        told = (
            each.of_claim(row) if row.answer.claim else each.of_contrasts(row)
            for each in self._by_weight(row.answer)
        )
        return [each for each in told if each]

    def seen(self, answer: Answer) -> str:
        """Return the id of the run to go by that a view suits; empty where there is none."""
        suited = (each for each in self._by_weight(answer) if answer.view in each.views)
        return next((each.run_id for each in suited), "")

    def _by_weight(self, answer: Answer) -> Sequence[Witness]:
        own = self._witnesses.get(answer.experiment, [])
        return sorted(own, key=lambda witness: witness.weight(answer), reverse=True)
