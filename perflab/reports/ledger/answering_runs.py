"""Runs that answer published rows: what each says of a row, and which is asked first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from perflab import systems
from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import Finding
from perflab.analysis.findings import joined
from perflab.analysis.noise import doubt
from perflab.errors import PerflabError
from perflab.parameters import check
from perflab.recordings import FREE_PARAMETERS, Contrast, Run, complete_blocks
from perflab.recordings.published_rows import Row
from perflab.reports.ledger.entry import NOT_TESTABLE, Entry
from perflab.reports.ledger.rows import mismatch, plan_of
from perflab.reports.rules import findings_of
from perflab.statistics.in_words import MISSING

if TYPE_CHECKING:
    from perflab.figures import View
    from perflab.trials.plan import RunPlan


def planned_today(run: Run) -> RunPlan | None:
    """Return what the run's experiment measures today, with the run's parameters; None: nothing."""
    try:
        experiment = systems.experiment(run.record.experiment)
        parameters = check(experiment.parameters, run.record.parameters, run.run_id)
        return experiment.plan(parameters)
    except PerflabError:
        return None


def question_key(contrast: Contrast) -> str:
    """Return a contrast without its wording and without what depends on the machine."""
    wording = {"claim", "source", "not_testable", "asks", "subject"}
    return contrast.model_dump_json(exclude=wording)


@dataclass
class AnsweringRun:
    """A chosen run that answers rows; it is read once, when its first answer is needed."""

    run: Run

    @cached_property
    def complete_blocks(self) -> int:
        """The number of the run's complete blocks."""
        return complete_blocks(self.run)

    @cached_property
    def doubt(self) -> str:
        """Why the run's answers are doubtful."""
        return doubt(self.run)

    @cached_property
    def plan_today(self) -> RunPlan | None:
        """What the run's experiment measures today, with its parameters."""
        return planned_today(self.run)

    @cached_property
    def other_cases(self) -> Mapping[str, str]:
        """What of the run's treatments is set otherwise today, in words, by treatment."""
        plan = self.plan_today
        today = {item.name: item.levels for item in plan.treatments} if plan else {}
        words = {
            item.name: [
                f"{factor} was {level}, the study's is {today[item.name][factor]}"
                for factor, level in item.levels.items()
                if today.get(item.name, item.levels).get(factor, level) != level
            ]
            for item in self.run.record.treatments
        }
        return {name: "; ".join(of) for name, of in words.items() if of}

    def other_case(self, contrast: Contrast) -> str:
        """Return what is set otherwise today in what a contrast compares."""
        record = self.run.record
        names = [
            name
            for side in (contrast.numerator, contrast.denominator)
            for name in record.selected(side)
        ]
        told = dict.fromkeys(filter(None, (self.other_cases.get(name, "") for name in names)))
        return f"another case than the study's: {'; '.join(told)}" if told else ""

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings by rules, and on the contrasts that the experiment still has unchanged.

        A published value may have been corrected since the run: then the verdict of the recorded
        contrast is about something else.
        """
        plan, recorded = self.plan_today, self.run.record.contrasts
        today = set(map(question_key, plan.contrasts)) if plan else set()
        return [
            finding
            for finding in findings_of(self.run)
            if finding.contrast not in recorded or question_key(finding.contrast) in today
        ]

    @property
    def treatments(self) -> set[str]:
        """The names of the run's treatments."""
        return {item.name for item in self.run.record.treatments}

    @cached_property
    def views(self) -> Mapping[str, View]:
        """The views that suit the run, by name."""
        from perflab.reports.figures import views_of

        return {view.name: view for view in views_of(self.run)}

    def judged(self, row: Row) -> Entry | None:
        """Return the entry by the findings that the row names; None where the run has none of them.

        Contrasts of another estimand or load than the row's do not count.
        """
        findings = [
            finding
            for finding in self.findings
            if row.covers(finding.contrast.name) and not mismatch(row, finding.contrast)
        ]
        if not findings:
            return None
        outcome = str(joined(findings).result)
        whys = [finding.verdict.reason for finding in findings]
        whys += [finding.absent for finding in findings if finding.effect is None]
        whys += [self.other_case(finding.contrast) for finding in findings]
        why = "; ".join(dict.fromkeys(filter(None, whys)))
        return self._entry(row, findings, outcome, why)

    def _entry(self, row: Row, findings: Sequence[Finding], outcome: str, why: str) -> Entry:
        if outcome == NOT_TESTABLE and not any(finding.effect for finding in findings):
            return Entry(row, outcome, why)
        measured = [effect_text(finding) for finding in findings]
        if len(findings) > 1:
            names = [finding.contrast.name.rpartition(", ")[2] for finding in findings]
            measured = [f"{name}: {text}" for name, text in zip(names, measured, strict=True)]
        n = tuple(part.effect.n_text if part.effect else MISSING for part in findings)
        return Entry(
            row, outcome, why, measured=tuple(measured), n=n, run_id=self.run.run_id, judged=True,
            doubt=self.doubt,
        )  # fmt: skip

    def weight(self, row: Row) -> tuple[bool, int, str]:
        """Return the rank of the run among those that can answer; the largest rank wins.

        First come runs with exactly the parameters of the row and defaults for the rest, then
        those with more complete blocks, then newer ones.
        """
        record = self.run.record
        planned = plan_of(row).parameters
        fields = systems.experiment(record.experiment).parameters.model_fields
        # A parameter that is newer than the run had what is its default today.
        defaults = {name: fields[name].default for name in planned if name in fields}
        actual = defaults | record.parameters
        names = (set(actual) | set(planned)) - set(FREE_PARAMETERS)
        is_as_planned = all(actual.get(name) == planned.get(name) for name in names)
        return is_as_planned, self.complete_blocks, record.created_at


def by_weight(runs: Sequence[AnsweringRun], row: Row) -> Sequence[AnsweringRun]:
    """Return the runs of a row's experiment, the one to ask first in front."""
    suited = [run for run in runs if run.run.record.experiment == row.experiment]
    return sorted(suited, key=lambda run: run.weight(row), reverse=True)
