"""The ledger in tables: its rows, and how many rows became of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from perflab.analysis.treatments.verdict import Outcome
from perflab.errors import ParameterError
from perflab.ledger.entries import (
    CHECKED,
    NO_ANSWER,
    NOT_TESTABLE,
    SAME,
    SHOWN,
    TAKEN_OVER,
    UNMEASURED,
    Entry,
)
from perflab.numerals import counted
from perflab.parameters import did_you_mean
from perflab.published import Answered

COLUMNS = (
    "study", "row", "kind", "published", "answer", "outcome", "measured [95%]", "n", "run", "why",
    "other runs", "note",
)  # fmt: skip
JUDGED = "judged"
# In this order they are counted; verdicts come first, in the order of their rule.
REST = (
    SHOWN, CHECKED, UNMEASURED, SAME, TAKEN_OVER, NOT_TESTABLE, str(Answered.NOT_COMPARABLE),
    str(Answered.NOT_BUILT), NO_ANSWER,
)  # fmt: skip
# Of these the reasons are counted apart.
BY_WHY = (NOT_TESTABLE, str(Answered.NOT_COMPARABLE), str(Answered.NOT_BUILT), NO_ANSWER)


def ledger_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row of text per published row."""
    rows = [
        (
            entry.row.study, entry.row.key, entry.row.kind, entry.row.published,
            str(entry.row.answer.kind), entry.outcome, "; ".join(entry.measured),
            "; ".join(dict.fromkeys(entry.n)), entry.run_id, entry.why, entry.others,
            entry.row.note,
        )
        for entry in entries
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def narrowed(entries: Sequence[Entry], answer: str) -> list[Entry]:
    """Return the entries with this kind of answer, or with this outcome (empty: all).

    Raises
    ------
    ParameterError
        There is no such answer.
    """
    if not answer:
        return list(entries)
    outcomes = {entry.outcome for entry in entries} | set(REST) | {each.value for each in Outcome}
    known = [*filter(None, map(str, Answered)), JUDGED, *sorted(outcomes)]
    if answer not in known:
        listed = ", ".join(dict.fromkeys(known))
        raise ParameterError(
            "answer", [f"no answer '{answer}'{did_you_mean(answer, known)}; there are: {listed}"]
        )
    return [entry for entry in entries if _is(entry, answer)]


def _is(entry: Entry, answer: str) -> bool:
    if answer == JUDGED:
        return entry.judged
    return answer in (str(entry.row.answer.kind), entry.outcome)


def count_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return how many rows became of what; reasons apart where nothing could be said."""
    found = Counter((_judged_first(entry), _why(entry)) for entry in entries)
    order = sorted(found, key=lambda key: (_place(key[0]), -found[key], key[1]))
    rows = [(outcome, why, found[outcome, why]) for outcome, why in order]
    return pd.DataFrame(rows, columns=["what became of it", "why", "rows"])


def _judged_first(entry: Entry) -> str:
    return f"{JUDGED}: {entry.outcome}" if entry.judged else entry.outcome


def _why(entry: Entry) -> str:
    return entry.why if entry.outcome in BY_WHY else ""


def _place(outcome: str) -> int:
    verdicts = [f"{JUDGED}: {each.value}" for each in Outcome]
    known = [*verdicts, *REST]
    return known.index(outcome) if outcome in known else len(verdicts)


def headline(entries: Sequence[Entry]) -> str:
    """Return the counts in a sentence."""
    questions = {entry.row.answer for entry in entries if entry.judged}
    table = count_table(entries)
    parts = [
        f"{rows} {outcome}"
        for outcome, rows in table.groupby("what became of it", sort=False)["rows"].sum().items()
    ]
    verdicts = f"Verdicts are on {counted(len(questions), 'question')}."
    return f"{counted(len(entries), 'published row')}: {'; '.join(parts)}. {verdicts}"
