"""Tables of the ledger and of the study check: as data, in a notebook, on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd
from rich.table import Table
from rich.text import Text

from perflab.analysis.verdict import Outcome
from perflab.errors import ParameterError
from perflab.parameters import did_you_mean
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
from perflab.reports.ledger.rows import Answered, Word
from perflab.reports.verdicts import LOOKS
from perflab.statistics.in_words import counted

COLUMNS = (
    "study", "row", "kind", "published", "answer", "outcome", "measured [95%]", "n", "run", "why",
    "note",
)  # fmt: skip
OUTCOME_COLUMN = "what became of it"
JUDGED = "judged"
# The order of the counts; verdicts come before these, in the order of their rule.
OTHER_OUTCOMES = (
    SHOWN, CHECKED, UNMEASURED, SAME, TAKEN_OVER, NOT_TESTABLE, str(Answered.NOT_COMPARABLE),
    NO_ANSWER,
)  # fmt: skip
# For these outcomes each reason is counted apart.
COUNTED_BY_REASON = (NOT_TESTABLE, str(Answered.NOT_COMPARABLE), NO_ANSWER)
MARKS = {
    **{outcome.value: look.color for outcome, look in LOOKS.items()},
    Word.INCONSISTENT.value: LOOKS[Outcome.NOT_REPRODUCED].color,
    Word.CONSISTENT.value: LOOKS[Outcome.REPRODUCED].color,
}


def narrowed(entries: Sequence[Entry], answer: str) -> list[Entry]:
    """Return the entries with this kind of answer, or with this outcome (empty: all).

    Raises
    ------
    ParameterError
        There is no such answer.
    """
    if not answer:
        return list(entries)
    outcomes = {*OTHER_OUTCOMES, *map(str, Outcome), *(entry.outcome for entry in entries)}
    known = [*filter(None, map(str, Answered)), JUDGED, *sorted(outcomes)]
    if answer not in known:
        near, listed = did_you_mean(answer, known), ", ".join(dict.fromkeys(known))
        raise ParameterError("answer", [f"no answer '{answer}'{near}; there are: {listed}"])
    if answer == JUDGED:
        return [entry for entry in entries if entry.judged]
    return [item for item in entries if answer in (str(item.row.answer.kind), item.outcome)]


def ledger_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row of text per published row."""
    rows = [
        (
            entry.row.study, entry.row.key, entry.row.kind, entry.row.published,
            str(entry.row.answer.kind), entry.outcome, "; ".join(entry.measured),
            "; ".join(dict.fromkeys(entry.n)), entry.run_id, entry.why,
            entry.row.note,
        )
        for entry in entries
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def count_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return the number of rows by outcome, and by reason where there was no answer."""
    counts = Counter(map(_outcome_and_reason, entries))
    order = sorted(counts, key=lambda key: (_place(key[0]), -counts[key], key[1]))
    rows = [(outcome, why, counts[outcome, why]) for outcome, why in order]
    return pd.DataFrame(rows, columns=[OUTCOME_COLUMN, "why", "rows"])


def _outcome_and_reason(entry: Entry) -> tuple[str, str]:
    outcome = f"{JUDGED}: {entry.outcome}" if entry.judged else entry.outcome
    return outcome, entry.why if entry.outcome in COUNTED_BY_REASON else ""


def _place(outcome: str) -> int:
    verdicts = [f"{JUDGED}: {outcome.value}" for outcome in Outcome]
    known = [*verdicts, *OTHER_OUTCOMES]
    return known.index(outcome) if outcome in known else len(verdicts)


def headline(entries: Sequence[Entry]) -> str:
    """Return the counts in a sentence."""
    questions = {entry.row.answer for entry in entries if entry.judged}
    counts = count_table(entries).groupby(OUTCOME_COLUMN, sort=False)["rows"].sum()
    parts = [f"{rows} {outcome}" for outcome, rows in counts.items()]
    verdicts = f"Verdicts are on {counted(len(questions), 'question')}."
    return f"{counted(len(entries), 'published row')}: {'; '.join(parts)}. {verdicts}"


def shown_ledger(entries: Sequence[Entry]) -> Shown:
    """Return the ledger as a notebook shows it, with the counts in a sentence below."""
    text = pd.DataFrame(
        [(_row_text(entry), entry.row.published, _answer_text(entry)) for entry in entries],
        columns=["row", "published", "answer"],
    )
    return Shown(ledger_table(entries), text, notes=[headline(entries)], marks=MARKS)


def shown_counts(entries: Sequence[Entry]) -> Shown:
    """Return the number of rows by outcome, with the counts in a sentence below."""
    table = count_table(entries)
    return Shown(table, table.astype("str"), frozenset({"rows"}), notes=[headline(entries)])


def shown_checks(table: pd.DataFrame) -> Shown:
    """Return the study check as a notebook shows it."""
    text = pd.DataFrame(
        [
            (row["finding"], f"{row['statement']}\n({row['study']}, {row['rule']})", row["numbers"])
            for row in table.to_dict("records")
        ],
        columns=["finding", "statement", "numbers"],
    )
    counts = table["finding"].value_counts()
    parts = [f"{counts.get(word.value, 0)} {word.value}" for word in Word]
    return Shown(table, text, notes=[f"{len(table)} checks: {', '.join(parts)}."], marks=MARKS)


def to_terminal(shown: Shown, title: str, ratios: Sequence[int]) -> Table:
    """Return a table as a rich one of any width; ``ratios`` are the relative widths of columns."""
    rich_table = Table(title=title, title_justify="left")
    for name, ratio in zip(map(str, shown.text.columns), ratios, strict=True):
        rich_table.add_column(name, ratio=ratio, justify="right" if name in shown.right else "left")
    red = LOOKS[Outcome.NOT_REPRODUCED].style
    has_several_lines = shown.text.map(lambda text: "\n" in text).to_numpy().any()
    for row in shown.text.itertuples(index=False, name=None):
        # An empty line separates rows whose cells have several lines.
        if has_several_lines and rich_table.row_count:
            rich_table.add_row()
        rich_table.add_row(*(Text(cell, red if cell == Word.INCONSISTENT else "") for cell in row))
    return rich_table


def _row_text(entry: Entry) -> str:
    row = entry.row
    return "\n".join(filter(None, [f"{row.study}, {row.kind or 'no kind'}", row.key, row.note]))


def _answer_text(entry: Entry) -> str:
    if entry.outcome in (UNMEASURED, SAME):
        return f"{entry.outcome}:\n{entry.why}"
    lines = [entry.outcome, *entry.measured]
    if entry.judged:
        lines.append(f"n = {', '.join(dict.fromkeys(entry.n))}; run {entry.run_id}")
    elif entry.run_id:
        lines.append(f"run {entry.run_id}")
    return "\n".join(filter(None, [*lines, entry.why]))
