"""The study check: what published numbers say by themselves, without any load.

Rules are code (:mod:`perflab.reports.ledger.rules`). The file ``checks.csv`` beside the published
results names the rows that they apply to, with one line per part of a check;
``data/published/README.md`` has its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from perflab.analysis.verdict import Outcome
from perflab.errors import ParameterError, RecordingError
from perflab.parameters import did_you_mean
from perflab.recordings import published, studies
from perflab.recordings.display import Shown
from perflab.recordings.published_results import shared_rows
from perflab.reports.ledger.rows import UNITS, Part, Parts, Result, Word, exactly, printed, row_key
from perflab.reports.ledger.rules import RULES
from perflab.reports.verdicts import LOOKS

STATEMENT, EVERY = "statement", "*"
AS_PRINTED = "as printed"
WANTED = "wanted"
COLUMNS = ("study", "check", "rule", "statement", "finding", "numbers", "rows")
KEY = ("place", "scenario", "measure")
# The colours of verdicts and of findings, as the ledger shows both.
MARKS = {
    **{outcome.value: look.color for outcome, look in LOOKS.items()},
    Word.INCONSISTENT.value: LOOKS[Outcome.NOT_REPRODUCED].color,
    Word.CONSISTENT.value: LOOKS[Outcome.REPRODUCED].color,
}
Line = dict[Any, str]
Known = dict[tuple[str, ...], Line]


@dataclass(frozen=True)
class Check:
    """A statement about published rows, and the result of its rule."""

    study: str
    name: str
    rule: str
    statement: str
    result: Result
    rows: tuple[str, ...]


def checks(study: str = "") -> list[Check]:
    """Check the published rows of a study, or of all.

    RecordingError where there is no such study, or a check names a rule or a row that does not
    exist.
    """
    names = [study] if study else studies()
    lines = shared_rows("checks")
    return [check for name in names for check in _of_study(name, lines)]


def check_table(study: str = "", finding: str = "") -> pd.DataFrame:
    """Return the checks as a table, inconsistent ones first.

    ParameterError where there is no such finding.
    """
    order = list(Word)
    if finding and finding not in order:
        near, known = did_you_mean(finding, order), ", ".join(order)
        raise ParameterError("finding", [f"no finding '{finding}'{near}; there are: {known}"])
    selected = [check for check in checks(study) if finding in ("", check.result.word)]
    rows = [
        (
            check.study, check.name, check.rule, check.statement, str(check.result.word),
            check.result.numbers, "; ".join(check.rows),
        )
        for check in sorted(selected, key=lambda check: order.index(check.result.word))
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def shown_checks(table: pd.DataFrame) -> Shown:
    """Return a :func:`check_table` as a notebook shows it."""
    texts = table["statement"] + "\n(" + table["study"] + ", " + table["rule"] + ")"
    text = table[["finding"]].assign(statement=texts, numbers=table["numbers"])
    counts = table["finding"].value_counts()
    parts = [f"{counts.get(word.value, 0)} {word.value}" for word in Word]
    return Shown(table, text, notes=[f"{len(table)} checks: {', '.join(parts)}."], marks=MARKS)


def _of_study(study: str, all_lines: Iterable[Line]) -> Iterator[Check]:
    lines: list[Line] = published(study).astype("str").to_dict("records")
    known = {tuple(line[name] for name in KEY): line for line in lines}
    by_check: dict[str, list[Line]] = {}
    for line in all_lines:
        if line["study"] == study:
            by_check.setdefault(line["check"], []).append(line)
    for name, lines in by_check.items():
        for scenario in _scenarios(lines, known):
            yield _check(study, name, lines, scenario, known)


def _scenarios(lines: Iterable[Line], known: Known) -> list[str]:
    """Return the scenarios that have every row of a check with ``*``; for other checks one ""."""
    general = [line for line in lines if line["scenario"] == EVERY]
    if not general:
        return [""]
    return [
        name
        for name in dict.fromkeys(key[1] for key in known)
        if all((line["place"], name, line["measure"]) in known for line in general)
    ]


def _check(study: str, name: str, lines: list[Line], scenario: str, known: Known) -> Check:
    where = f"checks.csv, {study}, '{name}'"
    rule = lines[0]["rule"]
    if rule not in RULES:
        raise RecordingError(f"{where}: no rule '{rule}'{did_you_mean(rule, RULES)}")
    try:
        parts = [_part(line, scenario, known) for line in lines if line["part"] != STATEMENT]
        result = RULES[rule](Parts(parts))
    except RecordingError as error:
        raise RecordingError(f"{where}: {error}") from None
    statement = next((line["text"] for line in lines if line["part"] == STATEMENT), name)
    rows = tuple(part.row for part in parts if part.row)
    if scenario:
        name, statement = f"{name}: {scenario}", f"{statement} ({scenario})"
    return Check(study, name, rule, statement, result, rows)


def _part(line: Line, scenario: str, known: Known) -> Part:
    if line["number"]:
        value = exactly(float(line["number"]) * UNITS[line["unit"]])
        return Part(line["part"], value, text=line["text"])
    if not line["place"]:
        return Part(line["part"], text=line["text"])
    key = (line["place"], scenario if line["scenario"] == EVERY else line["scenario"],
           line["measure"])  # fmt: skip
    name = row_key(*key)
    if key not in known:
        if line["part"] == WANTED:
            return Part(WANTED, None, name)
        raise RecordingError(f"no row '{name}'{did_you_mean(name, (row_key(*k) for k in known))}")
    row = known[key]
    value = printed(float(row["value"]), row["unit"], row["qualifier"], row["measure"])
    if line["text"] == AS_PRINTED:
        value = exactly(float(row["value"]) * UNITS[row["unit"]])
    return Part(line["part"], value, name, line["text"])
