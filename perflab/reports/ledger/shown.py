"""Shows the ledger's entries as tables: every row, or the number of rows by outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from perflab.analysis.verdict import Outcome
from perflab.errors import ParameterError
from perflab.parameters import unknown
from perflab.recordings import reference_runs
from perflab.recordings.display import Shown
from perflab.reports.ledger.entries import (
    CHECKED,
    NO_ANSWER,
    NOT_TESTABLE,
    SAME,
    SHOWN,
    TAKEN_OVER,
    UNMEASURED,
    Entry,
)
from perflab.reports.ledger.rows import Answered, Row
from perflab.reports.ledger.study_check import MARKS
from perflab.reports.runs import measured_where
from perflab.statistics.in_words import counted

JUDGED = "judged"
# The order of the counts; verdicts come before these, in the order of their rule.
OTHER_OUTCOMES = (
    SHOWN, CHECKED, UNMEASURED, SAME, TAKEN_OVER, NOT_TESTABLE, str(Answered.NOT_COMPARABLE),
    NO_ANSWER,
)  # fmt: skip
# For these outcomes each reason is counted apart.
COUNTED_BY_REASON = (NOT_TESTABLE, str(Answered.NOT_COMPARABLE), NO_ANSWER)


def narrowed(entries: Sequence[Entry], answer: str) -> list[Entry]:
    """Return the entries with this kind of answer, or with this outcome (empty: all).

    ParameterError where there is no such answer.
    """
    outcomes = {*OTHER_OUTCOMES, *map(str, Outcome), *(entry.outcome for entry in entries)}
    known = [JUDGED, *filter(None, map(str, Answered)), *sorted(outcomes)]
    if answer and (problems := unknown("answer", [answer], known)):
        raise ParameterError("answer", problems)
    return [
        entry
        for entry in entries
        if answer in ("", str(entry.row.answer.kind), entry.outcome, JUDGED if entry.judged else "")
    ]


COLUMNS = (
    "study", "row", "kind", "published", "answer", "outcome", "measured [95%]", "n", "run", "why",
    "note",
)  # fmt: skip


def ledger_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row of text per published row."""
    records = [
        (
            entry.row.study, entry.row.key, entry.row.kind, entry.row.published,
            str(entry.row.answer.kind), entry.outcome, "; ".join(entry.measured),
            "; ".join(dict.fromkeys(entry.n)), entry.run_id, entry.why, entry.row.note,
        )
        for entry in entries
    ]  # fmt: skip
    return pd.DataFrame(records, columns=list(COLUMNS))


def count_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return the number of rows by outcome, and by reason where there was no answer."""
    counts = Counter(
        (
            f"{JUDGED}: {entry.outcome}" if entry.judged else entry.outcome,
            entry.why if entry.outcome in COUNTED_BY_REASON else "",
        )
        for entry in entries
    )
    known = [*(f"{JUDGED}: {outcome.value}" for outcome in Outcome), *OTHER_OUTCOMES]
    place = {outcome: number for number, outcome in enumerate(known)}
    # Mixed verdicts come between verdicts and all others.
    mixed = len(Outcome) - 0.5
    keys = sorted(counts, key=lambda key: (place.get(key[0], mixed), -counts[key], key[1]))
    records = [(outcome, why, counts[outcome, why]) for outcome, why in keys]
    return pd.DataFrame(records, columns=["what became of it", "why", "rows"])


def headline(entries: Sequence[Entry]) -> str:
    """Return the counts in a sentence."""
    questions = {entry.row.answer for entry in entries if entry.judged}
    counts = count_table(entries).groupby("what became of it", sort=False)["rows"].sum()
    parts = [f"{rows} {outcome}" for outcome, rows in counts.items()]
    verdicts = f"Verdicts are on {counted(len(questions), 'question')}."
    return f"{counted(len(entries), 'published row')}: {'; '.join(parts)}. {verdicts}"


def notes_on(entries: Sequence[Entry]) -> list[str]:
    """Return the counts in a sentence, and where runs of the reference were measured."""
    names = {entry.run_id for entry in entries if entry.shipped}
    runs = [run for run in reference_runs() if run.run_id in names] if names else []
    return [headline(entries), *([measured_where(runs)] if runs else [])]


def shown_ledger(entries: Sequence[Entry]) -> Shown:
    """Return the ledger as a notebook shows it, with notes below."""
    text = pd.DataFrame(
        [(_row_text(entry.row), entry.row.published, _answer_text(entry)) for entry in entries],
        columns=["row", "published", "answer"],
    )
    return Shown(ledger_table(entries), text, notes=notes_on(entries), marks=MARKS)


def shown_counts(entries: Sequence[Entry]) -> Shown:
    """Return the number of rows by outcome, with the same notes below."""
    table = count_table(entries)
    return Shown(table, table.astype("str"), frozenset({"rows"}), notes=notes_on(entries))


def _row_text(row: Row) -> str:
    return "\n".join(filter(None, [f"{row.study}, {row.kind or 'no kind'}", row.key, row.note]))


def _answer_text(entry: Entry) -> str:
    if entry.outcome in (UNMEASURED, SAME):
        return f"{entry.outcome}:\n{entry.why}"
    n = f"n = {', '.join(dict.fromkeys(entry.n))}; " if entry.judged else ""
    whose = "reference run" if entry.shipped else "run"
    run = f"{n}{whose} {entry.run_id}" if entry.run_id else ""
    return "\n".join(filter(None, [entry.outcome, *entry.measured, run, entry.why]))
