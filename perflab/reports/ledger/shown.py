"""Shows the ledger's entries as tables: every row, or the number of rows by outcome and study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from perflab.analysis.results import AgainstStudy, Compared
from perflab.errors import ParameterError
from perflab.parameters import unknown
from perflab.recordings import reference_run
from perflab.recordings.display import Shown
from perflab.recordings.published_rows import Answered, Row
from perflab.reports.ledger.entry import (
    CHECKED,
    NO_ANSWER,
    SAME,
    SHOWN,
    TAKEN_OVER,
    UNMEASURED,
    Entry,
)
from perflab.reports.ledger.rows import plan_of
from perflab.reports.ledger.study_check import MARKS
from perflab.reports.runs import measured_where
from perflab.statistics.in_words import counted
from perflab.trials.duration import about, earlier_runs, expected_s

JUDGED = "judged"
DOUBTFUL = "doubtful"
RESULTS = (*map(str, AgainstStudy), *map(str, Compared))
# So many commands that measure rows are named.
MOST_COMMANDS = 3
# The order of the counts; verdicts come before these.
OTHER_OUTCOMES = (
    SHOWN, CHECKED, SAME, TAKEN_OVER, str(Answered.NOT_COMPARABLE), NO_ANSWER,
)  # fmt: skip
LEDGER_COLUMNS = (
    "study", "row", "kind", "published", "answered by", "outcome", "measured [95%]", "n", "run",
    "doubt", "why", "command", "note",
)  # fmt: skip


def narrowed(entries: Sequence[Entry], outcome: str) -> list[Entry]:
    """Return the entries with this outcome, those with a verdict (``judged``), or all (empty).

    ParameterError where there is no such outcome.
    """
    known = {*RESULTS, *OTHER_OUTCOMES, *(entry.outcome for entry in entries)}
    if outcome and (problems := unknown("outcome", [outcome], [JUDGED, *sorted(known)])):
        raise ParameterError("outcome", problems)
    return [
        entry for entry in entries if outcome in ("", entry.outcome, JUDGED if entry.judged else "")
    ]


def ledger_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row of text per published row."""
    records = [
        (
            entry.row.study, entry.row.key, entry.row.kind, entry.row.published,
            str(entry.row.answered_by), entry.outcome, "; ".join(entry.measured),
            "; ".join(dict.fromkeys(entry.n)), entry.run_id, entry.doubt, entry.why,
            entry.command, entry.row.note,
        )
        for entry in entries
    ]  # fmt: skip
    return pd.DataFrame(records, columns=list(LEDGER_COLUMNS))


def count_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return the number of rows by outcome, with a column for each study; and for all of several.

    Verdicts come first, in the order of their rule.
    """
    outcomes = [entry.outcome for entry in entries]
    known = (*RESULTS, *OTHER_OUTCOMES)
    table = pd.crosstab(
        pd.Categorical(outcomes, list(dict.fromkeys(known))), [entry.row.study for entry in entries]
    )
    if len(table.columns) > 1:
        table["all"] = table.sum(axis=1)
    return table.rename_axis(index="what became of it", columns=None).reset_index()


def headline(entries: Sequence[Entry]) -> str:
    """Return the number of rows in a sentence, and that of the questions with a verdict."""
    questions = {entry.row.question for entry in entries if entry.judged}
    verdicts = f"Verdicts are on {counted(len(questions), 'question')}."
    return f"{counted(len(entries), 'published row')}. {verdicts}"


def notes_on(entries: Sequence[Entry]) -> list[str]:
    """Return the number of rows, where the reference was measured, and which runs are doubtful."""
    names = {entry.run_id for entry in entries if entry.shipped}
    runs = [reference_run(name) for name in sorted(names)]
    doubtful = Counter((entry.run_id, entry.doubt) for entry in entries if entry.doubt)
    doubts = [
        f"{DOUBTFUL.capitalize()}, {counted(rows, 'row')} by run {name}: {why}"
        for (name, why), rows in doubtful.most_common()
    ]
    return [headline(entries), *([measured_where(runs)] if runs else []), *doubts]


def unmeasured(entries: Sequence[Entry]) -> list[str]:
    """Return a line for each command that measures most of what is not measured yet."""
    row_of = {entry.command: entry.row for entry in entries if entry.has_no_run}
    commands = Counter(entry.command for entry in entries if entry.has_no_run).most_common()
    lines = []
    for command, rows in commands[:MOST_COMMANDS]:
        plan = plan_of(row_of[command])
        seconds = expected_s(plan, earlier_runs(plan.experiment))
        lines.append((rows, command + (f" ({about(seconds)})" if seconds else "")))
    if others := sum(rows for _, rows in commands[MOST_COMMANDS:]):
        lines.append((others, f"perflab claims --outcome '{UNMEASURED}'"))
    return [f"{UNMEASURED.capitalize()}, {counted(rows, 'row')}: {words}" for rows, words in lines]


def shown_ledger(entries: Sequence[Entry], *, brief: bool = False) -> Shown:
    """Return the ledger as a notebook shows it, with notes below; ``brief`` leaves out reasons."""
    rows = [
        (entry.row.key, entry.row.published, _brief_text(entry))
        if brief
        else (_row_text(entry.row), entry.row.published, _outcome_text(entry))
        for entry in entries
    ]
    text = pd.DataFrame(rows, columns=["row", "published", "what became of it"])
    return Shown(ledger_table(entries), text, notes=notes_on(entries), marks=MARKS)


def shown_counts(entries: Sequence[Entry]) -> Shown:
    """Return the number of rows by outcome, with the same notes below."""
    table = count_table(entries)
    return Shown(table, table.astype("str"), frozenset(table.columns[1:]), notes=notes_on(entries))


def _row_text(row: Row) -> str:
    return "\n".join(filter(None, [f"{row.study}, {row.kind or 'no kind'}", row.key, row.note]))


def _brief_text(entry: Entry) -> str:
    return "; ".join([entry.outcome, *entry.measured, *([DOUBTFUL] if entry.doubt else [])])


def _outcome_text(entry: Entry) -> str:
    doubt = f"{DOUBTFUL}: {entry.doubt}" if entry.doubt else ""
    if entry.has_no_run or entry.outcome == SAME:
        return "\n".join(filter(None, [f"{entry.outcome}:", entry.command or entry.why, doubt]))
    n = f"n = {', '.join(dict.fromkeys(entry.n))}; " if entry.judged else ""
    whose = "reference run" if entry.shipped else "run"
    run = f"{n}{whose} {entry.run_id}" if entry.run_id else ""
    lines = [entry.outcome, *entry.measured, run, doubt, entry.why, entry.command]
    return "\n".join(filter(None, lines))
