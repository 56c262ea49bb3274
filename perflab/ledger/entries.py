"""One entry for every published row: what became of it, by what run, or why nothing did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perflab.analysis.treatments.evaluation import Finding
from perflab.analysis.treatments.joint import JointClaim
from perflab.analysis.treatments.verdict import Outcome
from perflab.chosen_runs import judged_runs
from perflab.errors import PerflabError
from perflab.ledger.declared import (
    all_not_testable,
    mismatch,
    planned_contrasts,
    settings_of,
    view_fault,
)
from perflab.ledger.evidence import Evidence, Witness
from perflab.published import Answered, Row, checks, reasons, rows
from perflab.published.row import KINDS
from perflab.published.study_check import Check
from perflab.reports.numbers import count, effect_text

UNMEASURED = "not measured yet"
SHOWN = "shown, not judged"
TAKEN_OVER = "taken over"
CHECKED = "checked by its own numbers"
SAME = "same as another row"
MIXED = "mixed"
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
    reasons: Mapping[str, str] = field(default_factory=dict)


def ledger(study: str = "", backend: str = "") -> list[Entry]:
    """Return an entry for every published row.

    Parameters
    ----------
    study : str
        Only rows of this one; empty: all.
    backend : str
        Only from runs on this one; empty: both.

    Raises
    ------
    RecordingError
        There is no such study, or a table of published rows is not well formed.
    """
    found = rows(study)
    known = {(check.study, check.name): check for check in checks(study)}
    books = _Books(Evidence.of(judged_runs(backend)), known, reasons())
    entries = [_entry(row, books) for row in found]
    by_key = {(entry.row.study, entry.row.key): entry for entry in entries}
    return [_followed(entry, by_key) for entry in entries]


def faults(study: str = "") -> list[str]:
    """Return a sentence for every row whose answer names nothing, or that has none."""
    found = (entry for entry in ledger(study) if entry.outcome == NO_ANSWER)
    return [f"{entry.row.study}, {entry.row.key}: {entry.why}" for entry in found]


def _entry(row: Row, books: _Books) -> Entry:
    if row.kind not in KINDS:
        return _fault(row, f"kind '{row.kind}' is none of {', '.join(KINDS)}")
    try:
        return _MAKERS[row.answer.kind](row, books)
    except PerflabError as error:
        # An answer of a system from elsewhere may name what is not there.
        return _fault(row, str(error))


def _by_contrast(row: Row, books: _Books) -> Entry:
    planned = planned_contrasts(row.answer)
    if not planned:
        return _fault(row, f"{row.answer.experiment} has no contrast '{row.answer.name}'")
    if unfit := next((why for why in (mismatch(row, each) for each in planned) if why), ""):
        return _fault(row, unfit)
    found = books.evidence.findings(row)
    if found:
        return _judged(row, [_of_contrasts(witness, each) for witness, each in found])
    if why := all_not_testable(planned):
        return Entry(row, NOT_TESTABLE, why)
    return Entry(row, UNMEASURED, row.answer.command)


@dataclass(frozen=True)
class _Told:
    """What a run says of a row."""

    run_id: str
    findings: Sequence[Finding]
    outcome: str
    why: str


def _of_contrasts(witness: Witness, findings: Sequence[Finding]) -> _Told:
    whys = dict.fromkeys(
        why
        for finding in findings
        for why in (finding.verdict.reason, "" if finding.effect else finding.absent)
        if why
    )
    return _Told(witness.run_id, findings, _agreed(findings), "; ".join(whys))


def _of_claim(witness: Witness, claim: JointClaim) -> _Told:
    verdict = claim.verdict
    return _Told(witness.run_id, claim.findings, str(verdict), verdict.reason)


def _judged(row: Row, found: Sequence[_Told]) -> Entry:
    told, *others = found
    if told.outcome == NOT_TESTABLE:
        return Entry(row, told.outcome, told.why)
    several = len(told.findings) > 1
    return Entry(
        row,
        told.outcome,
        told.why,
        measured=tuple(_measured(finding, several) for finding in told.findings),
        n=tuple(count(each.effect.n if each.effect else None) for each in told.findings),
        run_id=told.run_id,
        others=_of_others([each.outcome for each in others], told.outcome),
        judged=True,
    )


def _agreed(findings: Sequence[Finding]) -> str:
    words = dict.fromkeys(str(finding.verdict) for finding in findings)
    if len(words) == 1:
        return next(iter(words))
    return f"{MIXED}: {', '.join(words)}"


def _of_others(words: Sequence[str], outcome: str) -> str:
    if not words:
        return ""
    counted = {word: words.count(word) for word in dict.fromkeys(words)}
    told = [f"{number} as well" if word == outcome else f"{number} {word}"
            for word, number in counted.items()]  # fmt: skip
    return f"other runs: {', '.join(told)}"


def _measured(finding: Finding, several: bool) -> str:
    effect = finding.effect
    text = effect_text(effect)
    return f"{finding.contrast.name.rpartition(', ')[2]}: {text}" if several else text


def _by_view(row: Row, books: _Books) -> Entry:
    planned = row.answer.command
    if fault := view_fault(row.answer):
        return _fault(row, fault)
    if row.answer.claim:
        judged = books.evidence.judged(row)
        told = [_of_claim(witness, claim) for witness, claim in judged]
        return _judged(row, told) if told else Entry(row, UNMEASURED, planned)
    found = books.evidence.seen(row.answer)
    if not found:
        return Entry(row, UNMEASURED, planned)
    run_id = found[0].run_id
    return Entry(row, SHOWN, f"perflab.draw(run, '{row.answer.view}')", run_id=run_id)


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


def _built_in(row: Row, _: _Books) -> Entry:
    return Entry(row, TAKEN_OVER, row.answer.name)


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


def _not_built(row: Row, _: _Books) -> Entry:
    return Entry(row, Answered.NOT_BUILT, f"system of the study '{row.study}'")


def _same(row: Row, _: _Books) -> Entry:
    return Entry(row, SAME, row.answer.name)


def _unanswered(row: Row, _: _Books) -> Entry:
    return _fault(row, "it has no answer")


def _fault(row: Row, why: str) -> Entry:
    return Entry(row, NO_ANSWER, why)


_MAKERS: Mapping[Answered, Callable[[Row, _Books], Entry]] = {
    Answered.CONTRAST: _by_contrast,
    Answered.VIEW: _by_view,
    Answered.SETTING: _by_setting,
    Answered.BUILT_IN: _built_in,
    Answered.CHECK: _by_check,
    Answered.SAME_AS: _same,
    Answered.NOT_COMPARABLE: _by_reason,
    Answered.NOT_TESTABLE: _by_reason,
    Answered.NOT_BUILT: _not_built,
    Answered.NONE: _unanswered,
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
