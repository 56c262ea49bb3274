"""Makes an entry for every published row: what became of it by which run, or why nothing did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import pandas as pd

from perflab import systems
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import JointClaim
from perflab.analysis.verdict import Outcome
from perflab.errors import PerflabError
from perflab.figures import View
from perflab.parameters import check
from perflab.recordings import FREE_PARAMETERS, Contrast, Run, Selected
from perflab.reports.conversion import count, effect_text
from perflab.reports.figures import declared_views, views_of
from perflab.reports.ledger.rows import (
    KINDS,
    SIZES,
    Answer,
    Answered,
    Row,
    estimands,
    reasons,
    rows,
)
from perflab.reports.ledger.study_check import Check, checks
from perflab.reports.runs import judged_runs
from perflab.trials.plan import RunPlan


def plan_of(answer: Answer) -> RunPlan:
    """Return the plan of an answer's experiment with the answer's parameters.

    Raises
    ------
    PerflabError
        There is no such experiment, or it refuses the parameters.
    """
    return _plan(answer.experiment, answer.parameters)


@cache
def _plan(name: str, parameters: tuple[tuple[str, str], ...]) -> RunPlan:
    experiment = systems.experiment(name)
    return experiment.plan(check(experiment.parameters, dict(parameters), f"experiment '{name}'"))


def settings_of(answer: Answer) -> list[Any]:
    """Return all values of the parameter or factor that an answer names; raises as plan_of."""
    plan = plan_of(answer)
    value = plan.parameters.get(answer.name)
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [*(item for item in values if item is not None), *plan.factors.get(answer.name, ())]


def mismatch(row: Row, contrast: Contrast) -> str:
    """Return why a contrast may not judge a row: the rule "same estimand or no comparison".

    A size is judged only by a contrast of a response that measures the same (``estimands.csv``),
    and only at the published load: an experiment at another load gives its contrast no published
    size. A claim in words may be judged by its direction alone.
    """
    if row.value is None or row.kind not in SIZES:
        return ""
    if contrast.response not in estimands().get((row.study, row.measure), frozenset()):
        return f"'{row.measure}' is not what {contrast.response} measures"
    sizes = (contrast.published_ratio, contrast.published_difference)
    if sizes == (None, None) and contrast.published_direction != "none":
        return "the load is not the published one"
    return ""


def questions_today(run: Run) -> set[str]:
    """Return what the run's experiment asks today, with the run's parameters.

    A published value may have been corrected since the run: then the verdict of the recorded
    contrast is about something else.
    """
    try:
        experiment = systems.experiment(run.record.experiment)
        parameters = check(experiment.parameters, run.record.parameters, run.run_id)
        return set(map(_question, experiment.plan(parameters).contrasts))
    except PerflabError:
        return set()


def _question(contrast: Contrast) -> str:
    """Return a contrast without its wording and without what depends on the machine."""
    return contrast.model_dump_json(exclude={"claim", "source", "not_testable"})


@dataclass(frozen=True)
class RunAnswer:
    """What a run says of a row."""

    run_id: str
    findings: Sequence[Finding]
    outcome: str
    why: str


@dataclass
class AnsweringRun:
    """A chosen run that answers rows; it is read once, when its first answer is needed."""

    selected: Selected

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings on the contrasts that the experiment still has unchanged."""
        today = questions_today(self.selected.run)
        findings = evaluate(self.selected.run)
        return [finding for finding in findings if _question(finding.contrast) in today]

    @cached_property
    def views(self) -> Mapping[str, View]:
        """The views that suit the run, by name."""
        return {view.name: view for view in views_of(self.selected.run)}

    @cached_property
    def claims(self) -> Mapping[tuple[str, str], JointClaim]:
        """The claims that views of the run judge, by view and name."""
        return {
            (view.name, name): claim
            for view in self.views.values()
            if view.judging
            for name, claim in view.judging.of(self.selected.run).items()
        }

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.selected.run.run_id

    @property
    def experiment(self) -> str:
        """The experiment of the run."""
        return self.selected.run.record.experiment

    def of_contrasts(self, row: Row) -> RunAnswer | None:
        """Return the run's answer by the row's contrasts; None where it has none of them.

        Contrasts of another estimand or load than the row's do not count.
        """
        findings = [
            finding
            for finding in self.findings
            if row.answer.covers(finding.contrast.name) and not mismatch(row, finding.contrast)
        ]
        if not findings:
            return None
        words = dict.fromkeys(str(finding.verdict) for finding in findings)
        outcome = "mixed: " * (len(words) > 1) + ", ".join(words)
        whys: list[str] = []
        for finding in findings:
            whys += [finding.verdict.reason, "" if finding.effect else finding.absent]
        return RunAnswer(self.run_id, findings, outcome, _listed(whys))

    def of_claim(self, row: Row) -> RunAnswer | None:
        """Return the run's answer by the view that the row names; None where it judges nothing."""
        claim = self.claims.get((row.answer.view, row.answer.claim))
        if claim is None or any(mismatch(row, finding.contrast) for finding in claim.findings):
            return None
        return RunAnswer(self.run_id, claim.findings, str(claim.verdict), claim.verdict.reason)

    def weight(self, answer: Answer) -> tuple[bool, int, str]:
        """Return the rank of the run among those that can answer; the largest rank wins.

        First come runs with exactly the parameters of the answer and defaults for the rest, then
        those with more complete blocks, then newer ones.
        """
        record = self.selected.run.record
        actual, planned = record.parameters, plan_of(answer).parameters
        names = (set(actual) | set(planned)) - set(FREE_PARAMETERS)
        is_as_planned = all(actual.get(name) == planned.get(name) for name in names)
        return is_as_planned, self.selected.complete_blocks, record.created_at


@dataclass(frozen=True)
class Sources:
    """The sources of entries: chosen runs, checks by study and name, and reasons by name."""

    runs: Sequence[AnsweringRun]
    checks: Mapping[tuple[str, str], Check]
    reasons: Mapping[str, str]

    def answer(self, row: Row) -> RunAnswer | None:
        """Return the answer of the first run that has one to a row."""
        answers = (
            run.of_claim(row) if row.answer.claim else run.of_contrasts(row)
            for run in self._by_weight(row.answer)
        )
        return next(filter(None, answers), None)

    def run_with_view(self, answer: Answer) -> str:
        """Return the id of the first run that the answer's view suits; "" where there is none."""
        suited = (run for run in self._by_weight(answer) if answer.view in run.views)
        return next((run.run_id for run in suited), "")

    def _by_weight(self, answer: Answer) -> Sequence[AnsweringRun]:
        runs = [run for run in self.runs if run.experiment == answer.experiment]
        return sorted(runs, key=lambda run: run.weight(answer), reverse=True)


UNMEASURED = "not measured yet"
SHOWN = "shown, not judged"
TAKEN_OVER = "taken over"
CHECKED = "checked by its own numbers"
SAME = "same as another row"
NO_ANSWER = "no answer"
NOT_TESTABLE = Outcome.NOT_TESTABLE.value


@dataclass(frozen=True)
class Entry:
    """A published row and what became of it.

    ``outcome`` is a verdict's words where a contrast judges the row. ``why`` is the reason, or the
    command to type. ``measured`` and ``n`` have an item for each contrast of the row.
    """

    row: Row
    outcome: str
    why: str = ""
    measured: tuple[str, ...] = ()
    n: tuple[str, ...] = ()
    run_id: str = ""
    judged: bool = False


def ledger(study: str = "", backend: str = "") -> list[Entry]:
    """Return an entry for every published row of a study, from runs on a backend ("": all).

    Raises
    ------
    RecordingError
        There is no such study, or a table of published rows is not well formed.
    """
    runs = [AnsweringRun(selected) for selected in judged_runs(backend)]
    known = {(check.study, check.name): check for check in checks(study)}
    sources = Sources(runs, known, reasons())
    entries = [_entry(row, sources) for row in rows(study)]
    by_key = {(entry.row.study, entry.row.key): entry for entry in entries}
    return [_resolved(entry, by_key) for entry in entries]


def _entry(row: Row, sources: Sources) -> Entry:
    if row.kind not in KINDS:
        return _fault(row, f"kind '{row.kind}' is none of {', '.join(KINDS)}")
    try:
        return _MAKERS[row.answer.kind](row, sources)
    except PerflabError as error:
        # The answer may come from a user's system and name something that does not exist.
        return _fault(row, str(error))


def _fault(row: Row, why: str) -> Entry:
    return Entry(row, NO_ANSWER, why)


def _listed(reasons: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def _by_contrast(row: Row, sources: Sources) -> Entry:
    answer = row.answer
    planned = [item for item in plan_of(answer).contrasts if answer.covers(item.name)]
    if not planned:
        return _fault(row, f"{answer.experiment} has no contrast '{answer.name}'")
    if unfit := next(filter(None, (mismatch(row, contrast) for contrast in planned)), ""):
        return _fault(row, unfit)
    if run_answer := sources.answer(row):
        return _judged(row, run_answer)
    untestable = [contrast.not_testable for contrast in planned]
    if all(untestable):
        return Entry(row, NOT_TESTABLE, _listed(untestable))
    return Entry(row, UNMEASURED, answer.command)


def _by_view(row: Row, sources: Sources) -> Entry:
    view = declared_views(plan_of(row.answer).system).get(row.answer.view)
    if view is None:
        return _fault(row, f"there is no view '{row.answer.view}'")
    claims = view.judging.claims if view.judging else ()
    if row.answer.claim and row.answer.claim not in claims:
        return _fault(row, f"view '{view.name}' judges no '{row.answer.claim}'")
    if row.answer.claim and (run_answer := sources.answer(row)):
        return _judged(row, run_answer)
    run_id = "" if row.answer.claim else sources.run_with_view(row.answer)
    if not run_id:
        return Entry(row, UNMEASURED, row.answer.command)
    return Entry(row, SHOWN, f"perflab.draw(run, '{row.answer.view}')", run_id=run_id)


def _judged(row: Row, answer: RunAnswer) -> Entry:
    if answer.outcome == NOT_TESTABLE:
        return Entry(row, answer.outcome, answer.why)
    several = len(answer.findings) > 1
    return Entry(
        row,
        answer.outcome,
        answer.why,
        measured=tuple(_measured(finding, several) for finding in answer.findings),
        n=tuple(count(part.effect.n if part.effect else None) for part in answer.findings),
        run_id=answer.run_id,
        judged=True,
    )


def _measured(finding: Finding, several: bool) -> str:
    text = effect_text(finding.effect)
    return f"{finding.contrast.name.rpartition(', ')[2]}: {text}" if several else text


def _by_setting(row: Row, _: Sources) -> Entry:
    experiment, name = row.answer.experiment, row.answer.name
    values = settings_of(row.answer)
    if row.value in pd.to_numeric(pd.Series(values, dtype=str), errors="coerce").tolist():
        return Entry(row, TAKEN_OVER, f"{name} of {experiment}")
    shown = ", ".join(map(str, values)) or "nothing"
    return _fault(row, f"{experiment}: {name} is {shown}, published is {row.published}")


def _by_check(row: Row, sources: Sources) -> Entry:
    check = sources.checks.get((row.study, row.answer.name))
    if check is None:
        return _fault(row, f"there is no check '{row.answer.name}'")
    return Entry(row, CHECKED, f"{check.statement}: {check.result.word} ({check.result.numbers})")


def _by_reason(row: Row, sources: Sources) -> Entry:
    reason = sources.reasons.get(row.answer.name)
    if reason is None:
        return _fault(row, f"there is no reason '{row.answer.name}'")
    return Entry(row, str(row.answer.kind), reason)


_MAKERS: Mapping[Answered, Callable[[Row, Sources], Entry]] = {
    Answered.CONTRAST: _by_contrast,
    Answered.VIEW: _by_view,
    Answered.SETTING: _by_setting,
    Answered.BUILT_IN: lambda row, _: Entry(row, TAKEN_OVER, row.answer.name),
    Answered.CHECK: _by_check,
    Answered.SAME_AS: lambda row, _: Entry(row, SAME, row.answer.name),
    Answered.NOT_COMPARABLE: _by_reason,
    Answered.NOT_TESTABLE: _by_reason,
    Answered.NONE: lambda row, _: _fault(row, "it has no answer"),
}


def _resolved(entry: Entry, by_key: Mapping[tuple[str, str], Entry]) -> Entry:
    """Complete an entry that is the same as another row from the entry of that row."""
    if entry.outcome != SAME:
        return entry
    other = by_key.get((entry.row.study, entry.why))
    if other is None:
        return _fault(entry.row, f"there is no row '{entry.why}'")
    if other.row.answer.kind == Answered.SAME_AS:
        return _fault(entry.row, f"row '{entry.why}' is another's itself; name that one")
    return replace(
        entry,
        why=f"{entry.why}: {other.outcome}",
        measured=other.measured,
        n=other.n,
        run_id=other.run_id,
    )
