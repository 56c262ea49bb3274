"""Makes an entry for every published row: what became of it by which run, or why nothing did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from csv import DictReader
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from perflab import systems
from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import Finding
from perflab.analysis.findings import joined
from perflab.analysis.results import AgainstStudy
from perflab.errors import PerflabError, RecordingError
from perflab.parameters import check
from perflab.paths import reference_dir
from perflab.recordings import (
    FREE_PARAMETERS,
    Contrast,
    Run,
    complete_blocks,
    reference_runs,
    select,
)
from perflab.recordings.published_rows import Answered, Number, Row
from perflab.reports.ledger.rows import mismatch, plan_of, reasons, rows
from perflab.reports.ledger.study_check import Check, checks
from perflab.reports.rules import findings_of, rules_of
from perflab.reports.runs import judged_runs
from perflab.statistics.in_words import MISSING

if TYPE_CHECKING:
    from perflab.figures import View
    from perflab.trials.plan import RunPlan

UNMEASURED = AgainstStudy.NOT_MEASURED.value
SHOWN = "shown, not judged"
TAKEN_OVER = "taken over"
CHECKED = "checked by its own numbers"
SAME = "same as another row"
NO_ANSWER = "no answer"
NOT_TESTABLE = AgainstStudy.NOT_TESTABLE.value
LEDGER_FILE = "ledger.csv"
REFERENCE_COLUMNS = (
    "study", "row", "backend", "run", "judged", "outcome", "measured", "n", "why", "command",
)  # fmt: skip
# Between the items of a cell.
NEXT = " | "
Key = TypeVar("Key")
Named = TypeVar("Named")


@dataclass(frozen=True)
class Entry:
    """A published row and what became of it.

    ``outcome`` is the result where a contrast judges the row; of several, that of all of them.
    ``why`` is the reason, and
    ``command`` what measures or shows it. ``measured`` and ``n`` have an item for each contrast of
    the row. ``shipped`` says that the run is one of the reference.
    """

    row: Row
    outcome: str
    why: str = ""
    command: str = ""
    measured: tuple[str, ...] = ()
    n: tuple[str, ...] = ()
    run_id: str = ""
    judged: bool = False
    shipped: bool = False

    @property
    def has_no_run(self) -> bool:
        """Whether no run has measured the row; ``command`` does."""
        return self.outcome == UNMEASURED and not self.judged


def ledger(study: str = "", backend: str = "") -> list[Entry]:
    """Return an entry for every published row of a study, from runs on a backend ("": all).

    RecordingError where there is no such study, or a table of published rows is not well formed.
    """
    return _ledger(study, judged_runs(backend), _shipped(backend))


def reference_table() -> pd.DataFrame:
    """Return what the runs of the reference say of the rows, judged anew.

    It ships as ``ledger.csv`` beside the runs, so that the ledger need not read them.
    """
    runs = {run.run_id: run for run in reference_runs()}
    records = [
        (
            entry.row.study, entry.row.key, runs[entry.run_id].record.backend, entry.run_id,
            entry.judged, entry.outcome, NEXT.join(entry.measured), NEXT.join(entry.n), entry.why,
            entry.command,
        )
        for entry in _ledger("", select(runs.values()), {})
        if entry.run_id and entry.outcome != SAME
    ]  # fmt: skip
    return pd.DataFrame(records, columns=list(REFERENCE_COLUMNS))


def _shipped(backend: str) -> dict[tuple[str, str], dict[str, str]]:
    path = reference_dir() / LEDGER_FILE
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(DictReader(file))
    return {
        (line["study"], line["row"]): line for line in lines if backend in ("", line["backend"])
    }


def _by_reference(entry: Entry, line: Mapping[str, str]) -> Entry:
    measured, n = (tuple(filter(None, line[name].split(NEXT))) for name in ("measured", "n"))
    judged = line["judged"] == "True"
    return Entry(
        entry.row, line["outcome"], line["why"], line["command"], measured, n, line["run"], judged,
        shipped=True,
    )  # fmt: skip


def _ledger(
    study: str, chosen: Sequence[Run], shipped: Mapping[tuple[str, str], Mapping[str, str]]
) -> list[Entry]:
    runs = [AnsweringRun(run) for run in chosen]
    known = {(check.study, check.check): check for check in checks(study)}
    whys = reasons()
    entries = []
    for row in rows(study):
        try:
            entries.append(_answered(row, runs, known, whys))
        except PerflabError as error:
            # The answer may come from a user's system and name something that does not exist.
            entries.append(Entry(row, NO_ANSWER, str(error)))
    entries = [
        _by_reference(entry, shipped[entry.row.study, entry.row.key])
        if entry.has_no_run and (entry.row.study, entry.row.key) in shipped
        else entry
        for entry in entries
    ]
    by_key = {(entry.row.study, entry.row.key): entry for entry in entries}
    return [_resolved(entry, by_key) for entry in entries]


def _plan_today(run: Run) -> RunPlan | None:
    """Return what the run's experiment measures today, with the run's parameters; None: nothing."""
    try:
        experiment = systems.experiment(run.record.experiment)
        parameters = check(experiment.parameters, run.record.parameters, run.run_id)
        return experiment.plan(parameters)
    except PerflabError:
        return None


def _question(contrast: Contrast) -> str:
    """Return a contrast without its wording and without what depends on the machine."""
    return contrast.model_dump_json(exclude={"claim", "source", "not_testable"})


@dataclass
class AnsweringRun:
    """A chosen run that answers rows; it is read once, when its first answer is needed."""

    run: Run

    @cached_property
    def complete_blocks(self) -> int:
        """The number of the run's complete blocks."""
        return complete_blocks(self.run)

    @cached_property
    def plan_today(self) -> RunPlan | None:
        """What the run's experiment measures today, with its parameters."""
        return _plan_today(self.run)

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
        today = set(map(_question, plan.contrasts)) if plan else set()
        return [
            finding
            for finding in findings_of(self.run)
            if finding.contrast not in recorded or _question(finding.contrast) in today
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
            row, outcome, why, measured=tuple(measured), n=n, run_id=self.run.run_id, judged=True
        )

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


def _by_weight(runs: Sequence[AnsweringRun], row: Row) -> Sequence[AnsweringRun]:
    """Return the runs of a row's experiment, the one to ask first in front."""
    suited = [run for run in runs if run.run.record.experiment == row.experiment]
    return sorted(suited, key=lambda run: run.weight(row), reverse=True)


def _answered(
    row: Row,
    runs: Sequence[AnsweringRun],
    checks: Mapping[tuple[str, str], Check],
    whys: Mapping[str, str],
) -> Entry:
    """Return a row's entry; PerflabError where its answer names something that does not exist."""
    match row.answered_by:
        case Answered.CONTRAST:
            return _by_contrast(row, runs)
        case Answered.RULE:
            return _by_rule(row, runs)
        case Answered.VIEW:
            return _by_view(row, runs)
        case Answered.SETTING:
            return _by_setting(row)
        case Answered.BUILT_IN:
            return Entry(row, TAKEN_OVER, row.reason)
        case Answered.SAME_AS:
            return Entry(row, SAME)
        case Answered.CHECK:
            check = _named("check", (row.study, row.item), checks, row.item)
            return Entry(row, CHECKED, f"{check.statement}: {check.finding} ({check.numbers})")
        case Answered.NOT_COMPARABLE | Answered.NOT_TESTABLE:
            return Entry(row, str(row.answered_by), _named("reason", row.reason, whys, row.reason))
        case Answered.NONE:
            raise RecordingError("it has no answer")


def _named(kind: str, key: Key, known: Mapping[Key, Named], name: str) -> Named:
    if key not in known:
        raise RecordingError(f"there is no {kind} '{name}'")
    return known[key]


def _by_contrast(row: Row, runs: Sequence[AnsweringRun]) -> Entry:
    planned = [contrast for contrast in plan_of(row).contrasts if row.covers(contrast.name)]
    if not planned:
        raise RecordingError(f"{row.experiment} has no contrast '{row.item}'")
    if unfit := next(filter(None, (mismatch(row, contrast) for contrast in planned)), ""):
        raise RecordingError(unfit)
    for run in _by_weight(runs, row):
        if entry := run.judged(row):
            return entry
    untestable = [contrast.not_testable for contrast in planned]
    if all(untestable):
        return Entry(row, NOT_TESTABLE, "; ".join(dict.fromkeys(untestable)))
    return _unmeasured(row)


def _by_rule(row: Row, runs: Sequence[AnsweringRun]) -> Entry:
    system = plan_of(row).system
    if row.item not in (claim for rule in rules_of(system) for claim in rule.claims):
        raise RecordingError(f"no rule of system '{system}' judges '{row.item}'")
    entries = (run.judged(row) for run in _by_weight(runs, row))
    return next(filter(None, entries), None) or _unmeasured(row)


def _unmeasured(row: Row) -> Entry:
    return Entry(row, UNMEASURED, command=row.command)


def _by_view(row: Row, runs: Sequence[AnsweringRun]) -> Entry:
    plan = plan_of(row)
    planned = {item.name for item in plan.treatments}
    answering = _by_weight(runs, row)
    if answering:
        check_view(row.item, plan.system)
    for run in answering:
        # A figure shows what was published only if it has the treatments that are in question.
        if row.item in run.views and planned <= run.treatments:
            command = f"perflab.draw(run, '{row.item}')"
            return Entry(row, SHOWN, command=command, run_id=run.run.run_id)
    return _unmeasured(row)


def check_view(name: str, system: str) -> None:
    """Raise RecordingError where a system has no such view.

    All that draws is imported for it, so it is done only once there is a run to show.
    """
    from perflab.reports.figures import declared_views

    if name not in declared_views(system):
        raise RecordingError(f"there is no view '{name}'")


def _by_setting(row: Row) -> Entry:
    name, plan = row.item, plan_of(row)
    values = [*np.ravel(plan.parameters.get(name, ())), *plan.factors.get(name, ())]
    known = pd.to_numeric(pd.Series(values, dtype=str), errors="coerce").tolist()
    if isinstance(row, Number) and row.value in known:
        return Entry(row, TAKEN_OVER, f"{name} of {row.experiment}")
    shown = ", ".join(map(str, values)) or "nothing"
    raise RecordingError(f"{row.experiment}: {name} is {shown}, published is {row.published}")


def _resolved(entry: Entry, by_key: Mapping[tuple[str, str], Entry]) -> Entry:
    """Complete an entry that is the same as another row from the entry of that row."""
    if entry.outcome != SAME:
        return entry
    row, key = entry.row, entry.row.item
    other = by_key.get((row.study, key))
    if other is None:
        return replace(entry, outcome=NO_ANSWER, why=f"there is no row '{key}'")
    return replace(
        other, row=row, outcome=SAME, why=f"{key}: {other.outcome}", command="", judged=False
    )
