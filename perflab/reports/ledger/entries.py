"""Makes an entry for every published row: what became of it by which run, or why nothing did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from csv import DictReader
from dataclasses import replace
from typing import TypeVar

import pandas as pd

from perflab.errors import PerflabError, RecordingError
from perflab.paths import reference_dir
from perflab.recordings import Run, reference_runs, select
from perflab.recordings.published_rows import Answered, Number, Row
from perflab.reports.ledger.answering_runs import AnsweringRun, by_weight
from perflab.reports.ledger.entry import (
    CHECKED,
    NO_ANSWER,
    NOT_TESTABLE,
    SAME,
    SHOWN,
    TAKEN_OVER,
    UNMEASURED,
    Entry,
)
from perflab.reports.ledger.rows import mismatch, plan_of, reasons, rows, settings_of
from perflab.reports.ledger.study_check import Check, checks
from perflab.reports.rules import rules_of
from perflab.reports.runs import judged_runs

LEDGER_FILE = "ledger.csv"
REFERENCE_COLUMNS = (
    "study", "row", "backend", "run", "judged", "outcome", "measured", "n", "why", "command",
    "doubt",
)  # fmt: skip
# Between the items of a cell.
NEXT = " | "
Key = TypeVar("Key")
Named = TypeVar("Named")


def ledger(study: str = "", backend: str = "") -> list[Entry]:
    """Return an entry for every published row of a study, from runs on a backend ("": all).

    RecordingError where there is no such study, or a table of published rows is not well formed.
    """
    return _ledger(study, judged_runs(backend), _shipped(backend))


def reference_table() -> pd.DataFrame:
    """Return what the runs of the reference say of the rows, judged anew, by backend.

    It ships as ``ledger.csv`` beside the runs, so that the ledger need not read them.
    """
    by_backend: dict[str, list[Run]] = {}
    for run in reference_runs():
        by_backend.setdefault(run.record.backend, []).append(run)
    records = [
        (
            entry.row.study, entry.row.key, backend, entry.run_id, entry.judged, entry.outcome,
            NEXT.join(entry.measured), NEXT.join(entry.n), entry.why, entry.command, entry.doubt,
        )
        for backend, runs in sorted(by_backend.items())
        for entry in _ledger("", select(runs), {})
        if entry.run_id and entry.outcome != SAME
    ]  # fmt: skip
    return pd.DataFrame(records, columns=list(REFERENCE_COLUMNS))


def _shipped(backend: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return the lines of the shipped table by row; those of processes come first."""
    path = reference_dir() / LEDGER_FILE
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(DictReader(file))
    lines.sort(key=lambda line: line["backend"] == "process")
    return {
        (line["study"], line["row"]): line for line in lines if backend in ("", line["backend"])
    }


def _by_reference(row: Row, line: Mapping[str, str]) -> Entry:
    measured, n = (tuple(filter(None, line[name].split(NEXT))) for name in ("measured", "n"))
    judged = line["judged"] == "True"
    return Entry(
        row, line["outcome"], line["why"], line["command"], measured, n, line["run"], judged,
        shipped=True, doubt=line["doubt"],
    )  # fmt: skip


def _ledger(
    study: str, chosen: Sequence[Run], shipped: Mapping[tuple[str, str], Mapping[str, str]]
) -> list[Entry]:
    runs = [AnsweringRun(run) for run in chosen]
    measured = {run.record.experiment for run in chosen}
    known = {(check.study, check.check): check for check in checks(study)}
    whys = reasons()
    entries = []
    for row in rows(study):
        line = shipped.get((row.study, row.key))
        if line and row.experiment and row.experiment not in measured:
            # What ships was planned and judged when it was made, elsewhere perhaps.
            entries.append(_by_reference(row, line))
            continue
        try:
            entry = _answered(row, runs, known, whys)
        except PerflabError as error:
            # The answer may come from a user's system and name something that does not exist.
            entry = Entry(row, NO_ANSWER, str(error))
        entries.append(_by_reference(row, line) if line and entry.has_no_run else entry)
    by_key = {(entry.row.study, entry.row.key): entry for entry in entries}
    return [_resolved(entry, by_key) for entry in entries]


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
    for run in by_weight(runs, row):
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
    entries = (run.judged(row) for run in by_weight(runs, row))
    return next(filter(None, entries), None) or _unmeasured(row)


def _unmeasured(row: Row) -> Entry:
    return Entry(row, UNMEASURED, command=row.command)


def _by_view(row: Row, runs: Sequence[AnsweringRun]) -> Entry:
    plan = plan_of(row)
    planned = {item.name for item in plan.treatments}
    answering = by_weight(runs, row)
    if answering:
        check_view(row.item, plan.system)
    for run in answering:
        # A figure shows what was published only if it has the treatments that are in question.
        if row.item in run.views and planned <= run.treatments:
            command = f"perflab.draw(run, '{row.item}')"
            return Entry(row, SHOWN, command=command, run_id=run.run.run_id, doubt=run.doubt)
    return _unmeasured(row)


def check_view(name: str, system: str) -> None:
    """Raise RecordingError where a system has no such view.

    All that draws is imported for it, so it is done only once there is a run to show.
    """
    from perflab.reports.figures import declared_views

    if all(view.name != name for view in declared_views(system)):
        raise RecordingError(f"there is no view '{name}'")


def _by_setting(row: Row) -> Entry:
    name, values = row.item, settings_of(row)
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
