"""What is wrong with the answers themselves: each must name something that exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perflab.errors import PerflabError
from perflab.ledger.declared import mismatch, planned_contrasts, settings_of, view_fault
from perflab.published import Answered, Row, checks, reasons, rows
from perflab.published.row import KINDS


@dataclass(frozen=True)
class _Known:
    """All names that answers may use besides those of experiments."""

    rows: Mapping[tuple[str, str], Row]
    checks: frozenset[tuple[str, str]]
    reasons: frozenset[str]


def faults(study: str = "") -> list[str]:
    """Return a sentence for every row whose answer names nothing, or that has none.

    Plans are made with the parameters that answers declare; nothing is measured.
    """
    found = rows(study)
    known = _Known(
        {(row.study, row.key): row for row in found},
        frozenset((check.study, check.name) for check in checks(study)),
        frozenset(reasons()),
    )
    told = []
    for row in found:
        try:
            fault = _fault(row, known)
        except PerflabError as error:
            fault = str(error)
        if fault:
            told.append(f"{row.study}, {row.key}: {fault}")
    return told


def _fault(row: Row, known: _Known) -> str:
    if row.kind not in KINDS:
        return f"kind '{row.kind}' is none of {', '.join(KINDS)}"
    looks = _LOOKS.get(row.answer.kind)
    return looks(row, known) if looks else ""


def _of_contrast(row: Row, _: _Known) -> str:
    planned = planned_contrasts(row.answer)
    if not planned:
        return f"{row.answer.experiment} has no contrast '{row.answer.name}'"
    return next((why for why in (mismatch(row, each) for each in planned) if why), "")


def _of_view(row: Row, _: _Known) -> str:
    return view_fault(row.answer)


def _of_setting(row: Row, _: _Known) -> str:
    values = settings_of(row.answer)
    if any(_is_number(value, row.value) for value in values):
        return ""
    shown = ", ".join(map(str, values)) or "nothing"
    return f"{row.answer.experiment}: {row.answer.name} is {shown}, published is {row.published}"


def _is_number(value: object, published: float | None) -> bool:
    try:
        return published is not None and float(str(value)) == published
    except ValueError:
        return False


def _of_check(row: Row, known: _Known) -> str:
    has = (row.study, row.answer.name) in known.checks
    return "" if has else f"there is no check '{row.answer.name}'"


def _of_reason(row: Row, known: _Known) -> str:
    return "" if row.answer.name in known.reasons else f"there is no reason '{row.answer.name}'"


def _of_same(row: Row, known: _Known) -> str:
    other = known.rows.get((row.study, row.answer.name))
    if other is None:
        return f"there is no row '{row.answer.name}'"
    if other.answer.kind == Answered.SAME_AS:
        return f"row '{row.answer.name}' is another's itself; name that one"
    return ""


def _of_none(_: Row, __: _Known) -> str:
    return "it has no answer"


_LOOKS: Mapping[Answered, Callable[[Row, _Known], str]] = {
    Answered.CONTRAST: _of_contrast,
    Answered.VIEW: _of_view,
    Answered.SETTING: _of_setting,
    Answered.CHECK: _of_check,
    Answered.SAME_AS: _of_same,
    Answered.NOT_COMPARABLE: _of_reason,
    Answered.NOT_TESTABLE: _of_reason,
    Answered.NONE: _of_none,
}
