"""The ledger and the study check as they are shown: in a notebook, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from perflab.analysis.treatments.verdict import Outcome
from perflab.display import Shown
from perflab.ledger.entries import SAME, UNMEASURED, Entry
from perflab.ledger.tables import count_table, headline, ledger_table
from perflab.published.parts import Word
from perflab.reports.verdicts import LOOKS

BAD = LOOKS[Outcome.NOT_REPRODUCED]
MARKS = {
    **{outcome.value: look.color for outcome, look in LOOKS.items()},
    Word.INCONSISTENT.value: BAD.color,
    Word.CONSISTENT.value: LOOKS[Outcome.REPRODUCED].color,
}


def shown_ledger(entries: Sequence[Entry]) -> Shown:
    """Return the ledger as a notebook shows it; below it the counts in a sentence."""
    text = pd.DataFrame(
        [(_asked(entry), entry.row.published, _answered(entry)) for entry in entries],
        columns=["row", "published", "answer"],
    )
    return Shown(ledger_table(entries), text, notes=[headline(entries)], marks=MARKS)


def shown_counts(entries: Sequence[Entry]) -> Shown:
    """Return how many rows became of what."""
    table = count_table(entries)
    return Shown(table, table.astype("str"), frozenset({"rows"}), notes=[headline(entries)])


def shown_checks(table: pd.DataFrame) -> Shown:
    """Return the study check: what does not fit first."""
    text = pd.DataFrame(
        [
            (row["finding"], f"{row['statement']}\n({row['study']}, {row['rule']})", row["numbers"])
            for row in _records(table)
        ],
        columns=["finding", "statement", "numbers"],
    )
    return Shown(table, text, notes=[check_headline(table)], marks=MARKS)


def check_headline(table: pd.DataFrame) -> str:
    """Return how many checks found what."""
    counts = table["finding"].value_counts()
    parts = [f"{counts.get(word.value, 0)} {word.value}" for word in Word]
    return f"{len(table)} checks: {', '.join(parts)}."


def ledger_to_terminal(entries: Sequence[Entry]) -> Table:
    """Return the ledger as a rich table that any width fits."""
    drawn = _drawn("Published rows and what became of them", ("row", 4), ("published", 3),
                   ("answer", 5))  # fmt: skip
    for entry in entries:
        _add(drawn, Text(_asked(entry)), Text(entry.row.published), Text(_answered(entry)))
    return drawn


def counts_to_terminal(entries: Sequence[Entry]) -> Table:
    """Return the counts as a rich table."""
    drawn = Table(title="What became of them", title_justify="left")
    drawn.add_column("rows", justify="right", no_wrap=True)
    drawn.add_column("what became of it")
    for row in _records(count_table(entries)):
        why = f": {row['why']}" if row["why"] else ""
        drawn.add_row(str(row["rows"]), Text(f"{row['what became of it']}{why}"))
    return drawn


def checks_to_terminal(table: pd.DataFrame) -> Table:
    """Return the study check as a rich table."""
    drawn = _drawn("What published numbers say by themselves", ("statement", 5), ("finding", 2),
                   ("numbers", 4))  # fmt: skip
    for row in _records(table):
        words = Text(f"{row['statement']}\n({row['study']}, {row['rule']})")
        style = BAD.style if row["finding"] == Word.INCONSISTENT else ""
        _add(drawn, words, Text(row["finding"], style), Text(row["numbers"]))
    return drawn


def _drawn(title: str, *columns: tuple[str, int]) -> Table:
    drawn = Table(title=title, title_justify="left")
    for name, ratio in columns:
        drawn.add_column(name, ratio=ratio)
    return drawn


def _add(drawn: Table, *cells: Text) -> None:
    """Add a row, an empty line before it: cells have several."""
    if drawn.row_count:
        drawn.add_row()
    drawn.add_row(*cells)


def _records(table: pd.DataFrame) -> list[Mapping[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _asked(entry: Entry) -> str:
    row = entry.row
    note = [row.note] if row.note else []
    return "\n".join([f"{row.study}, {row.kind or 'no kind'}", row.key, *note])


def _answered(entry: Entry) -> str:
    if entry.outcome == UNMEASURED:
        return f"{UNMEASURED}:\n{entry.why}"
    if entry.outcome == SAME:
        return f"{SAME}:\n{entry.why}"
    lines = [entry.outcome, *entry.measured]
    if entry.judged:
        lines.append(f"n = {', '.join(dict.fromkeys(entry.n))}; run {entry.run_id}")
    elif entry.run_id:
        lines.append(f"run {entry.run_id}")
    return "\n".join([*lines, *filter(None, [entry.why, entry.others])])
