"""One entry for every published row: what became of it, by what run, or why nothing did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from perflab import systems
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import JointClaim
from perflab.analysis.verdict import Outcome
from perflab.errors import PerflabError
from perflab.figures import View
from perflab.parameters import check
from perflab.recordings import FREE_PARAMETERS, Contrast, Run, Selected
from perflab.reports.chosen_runs import judged_runs
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
from perflab.reports.markdown import count, effect_text
from perflab.trials.plan import RunPlan


def plan_of(answer: Answer) -> RunPlan:
    """Return the plan that an answer's experiment and parameters make.

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
    """Return all values that a parameter or factor of this name takes; raises as plan_of."""
    plan = plan_of(answer)
    value = plan.parameters.get(answer.name)
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [*(each for each in values if each is not None), *plan.factors.get(answer.name, ())]


def view_fault(answer: Answer) -> str:
    """Return what an answer names that its system does not declare, or nothing; raises so."""
    view = declared_views(plan_of(answer).system).get(answer.view)
    if view is None:
        return f"there is no view '{answer.view}'"
    judged = view.judging.claims if view.judging else ()
    if answer.claim and answer.claim not in judged:
        return f"view '{view.name}' judges no '{answer.claim}'"
    return ""


def mismatch(row: Row, contrast: Contrast) -> str:
    """Return why a contrast may not judge a row: the rule "same estimand or no comparison".

    A size is judged only by a contrast of a response that measures the same (``estimands.csv``),
    and only where the experiment holds the load for the published one: otherwise its contrast has
    no published size. A claim in words may be judged by its direction alone.
    """
    if row.value is None or row.kind not in SIZES:
        return ""
    if contrast.response not in estimands().get((row.study, row.measure), frozenset()):
        return f"'{row.measure}' is not what {contrast.response} measures"
    sizes = (contrast.published_ratio, contrast.published_difference)
    if sizes == (None, None) and contrast.published_direction != "none":
        return "the load is not the published one"
    return ""


def standing(run: Run) -> Mapping[str, Contrast]:
    """Return the contrasts of a run that its experiment would ask today just so, by name.

    What was published may have been corrected since the run, or be of another estimand: then the
    verdict that the record leads to is one on something else.
    """
    try:
        experiment = systems.experiment(run.record.experiment)
        parameters = check(experiment.parameters, run.record.parameters, run.run_id)
        today = experiment.plan(parameters).contrasts
    except PerflabError:
        return {}
    asked = {_question(each) for each in today}
    return {each.name: each for each in run.record.contrasts if _question(each) in asked}


def _question(contrast: Contrast) -> str:
    """Return what is asked, in what words ever, and on whichever machine."""
    return contrast.model_dump_json(exclude={"claim", "source", "not_testable"})


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
    """All chosen runs, as :func:`perflab.reports.chosen_runs.judged_runs` chooses them."""

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

    ``outcome`` is a verdict's words where a contrast judges the row; ``why`` its reason, or what
    to type. ``measured`` and ``n`` have a line for each contrast of the row.
    """

    row: Row
    outcome: str
    why: str = ""
    measured: tuple[str, ...] = ()
    n: tuple[str, ...] = ()
    run_id: str = ""
    others: str = ""
    judged: bool = False


@dataclass(frozen=True)
class _Books:
    """What entries are made from."""

    evidence: Evidence
    checks: Mapping[tuple[str, str], Check]
    reasons: Mapping[str, str]


def ledger(study: str = "", backend: str = "") -> list[Entry]:
    """Return an entry for every published row of a study, from runs on a backend; empty: all.

    Raises
    ------
    RecordingError
        There is no such study, or a table of published rows is not well formed.
    """
    known = {(check.study, check.name): check for check in checks(study)}
    books = _Books(Evidence(judged_runs(backend)), known, reasons())
    entries = [_entry(row, books) for row in rows(study)]
    by_key = {(entry.row.study, entry.row.key): entry for entry in entries}
    return [_followed(entry, by_key) for entry in entries]


def _entry(row: Row, books: _Books) -> Entry:
    if row.kind not in KINDS:
        return _fault(row, f"kind '{row.kind}' is none of {', '.join(KINDS)}")
    try:
        return _MAKERS[row.answer.kind](row, books)
    except PerflabError as error:
        # An answer of a system from elsewhere may name what is not there.
        return _fault(row, str(error))


def _fault(row: Row, why: str) -> Entry:
    return Entry(row, NO_ANSWER, why)


def _by_contrast(row: Row, books: _Books) -> Entry:
    answer = row.answer
    planned = [each for each in plan_of(answer).contrasts if answer.covers(each.name)]
    if not planned:
        return _fault(row, f"{answer.experiment} has no contrast '{answer.name}'")
    if unfit := next(filter(None, (mismatch(row, each) for each in planned)), ""):
        return _fault(row, unfit)
    if told := books.evidence.told(row):
        return _judged(row, told)
    untestable = dict.fromkeys(each.not_testable for each in planned)
    if all(untestable):
        return Entry(row, NOT_TESTABLE, "; ".join(untestable))
    return Entry(row, UNMEASURED, answer.command)


def _by_view(row: Row, books: _Books) -> Entry:
    if fault := view_fault(row.answer):
        return _fault(row, fault)
    if row.answer.claim and (told := books.evidence.told(row)):
        return _judged(row, told)
    run_id = "" if row.answer.claim else books.evidence.seen(row.answer)
    if not run_id:
        return Entry(row, UNMEASURED, row.answer.command)
    return Entry(row, SHOWN, f"perflab.draw(run, '{row.answer.view}')", run_id=run_id)


def _judged(row: Row, told: Sequence[Told]) -> Entry:
    first, *others = told
    if first.outcome == NOT_TESTABLE:
        return Entry(row, first.outcome, first.why)
    several = len(first.findings) > 1
    return Entry(
        row,
        first.outcome,
        first.why,
        measured=tuple(_measured(each, several) for each in first.findings),
        n=tuple(count(each.effect.n if each.effect else None) for each in first.findings),
        run_id=first.run_id,
        others=_of_others(Counter(each.outcome for each in others), first.outcome),
        judged=True,
    )


def _measured(finding: Finding, several: bool) -> str:
    text = effect_text(finding.effect)
    return f"{finding.contrast.name.rpartition(', ')[2]}: {text}" if several else text


def _of_others(counts: Mapping[str, int], outcome: str) -> str:
    told = [f"{number} {'as well' if word == outcome else word}" for word, number in counts.items()]
    return f"other runs: {', '.join(told)}" if told else ""


def _by_setting(row: Row, _: _Books) -> Entry:
    own, name = row.answer.experiment, row.answer.name
    values = settings_of(row.answer)
    if any(_is_number(value, row.value) for value in values):
        return Entry(row, TAKEN_OVER, f"{name} of {own}")
    shown = ", ".join(map(str, values)) or "nothing"
    return _fault(row, f"{own}: {name} is {shown}, published is {row.published}")


def _is_number(value: object, published: float | None) -> bool:
    try:
        return published is not None and float(str(value)) == published
    except ValueError:
        return False


def _by_check(row: Row, books: _Books) -> Entry:
    check = books.checks.get((row.study, row.answer.name))
    if check is None:
        return _fault(row, f"there is no check '{row.answer.name}'")
    return Entry(row, CHECKED, f"{check.statement}: {check.result.word} ({check.result.numbers})")


def _by_reason(row: Row, books: _Books) -> Entry:
    name = row.answer.name
    if name not in books.reasons:
        return _fault(row, f"there is no reason '{name}'")
    return Entry(row, str(row.answer.kind), books.reasons[name])


_MAKERS: Mapping[Answered, Callable[[Row, _Books], Entry]] = {
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


def _followed(entry: Entry, by_key: Mapping[tuple[str, str], Entry]) -> Entry:
    """Add to an entry that is another row's what became of that one."""
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
