"""One entry for every published row: what became of it, by what run, or why nothing did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from perflab.analysis.treatments.evaluation import Finding
from perflab.analysis.treatments.verdict import Outcome
from perflab.chosen_runs import judged_runs
from perflab.errors import PerflabError
from perflab.ledger.declared import mismatch, plan_of, settings_of, view_fault
from perflab.ledger.evidence import Evidence, Told
from perflab.published import Answered, Row, checks, reasons, rows
from perflab.published.answered_rows import KINDS
from perflab.published.study_check import Check
from perflab.reports.numbers import count, effect_text

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
