"""Variants whose answers under load are like none that was checked before: nothing is compared.

The checks are those of all variants, before every load of the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

import pandas as pd

from perflab.analysis.doubts.answer_classes import (
    AnswerClass,
    Answers,
    Checked,
    keys_as_text,
    keys_from_text,
    risen,
    unseen,
)
from perflab.recordings import Run
from perflab.statistics.in_words import counted

TABLE = "answers"
# A row for each class of answers: those of the ``check`` before the load, or of the ``load``.
CHECK, LOAD = "check", "load"
REQUEST = "request"
COLUMNS: Mapping[str, str] = {
    "when": "string", REQUEST: "string", "status": "int64", "media_type": "string",
    "form": "string", "keys": "string", "bytes": "int64", "answers": "double", "example": "string",
}  # fmt: skip
WAY_OUT = (
    "If they are right, give a text that every right answer holds (--expect-body), and each is "
    "held against it instead"
)
# Sentences by treatment, of runs that were judged.
_TOLD: WeakKeyDictionary[Run, tuple[object, dict[str, str]]] = WeakKeyDictionary()


def answer_rows(when: str, answers: Mapping[str, Iterable[Answers]]) -> pd.DataFrame:
    """Return answers, by the name of their request, as rows of the table."""
    rows = [
        (when, name, each.answer.status, each.answer.media_type, each.answer.form,
         keys_as_text(each.answer), each.answer.size, each.number, each.example)
        for name, of_name in answers.items()
        for each in of_name
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*COLUMNS]).astype(
        {name: kind for name, kind in COLUMNS.items() if kind != "string"}
    )


def unseen_answers(run: Run) -> dict[str, str]:
    """Return a sentence for each treatment whose answers under load nothing has checked."""
    record, told = _TOLD.get(run, (None, {}))
    if record is not run.record:
        told = _unseen_answers(run)
        _TOLD[run] = run.record, told
    return told


def _unseen_answers(run: Run) -> dict[str, str]:
    if TABLE not in run.record.tables:
        return {}
    # What was answered in a trial that is not valid was answered all the same.
    rows = run.table(TABLE, [*run.current_trials()["trial_id"]])
    if REQUEST not in rows:  # of runs before loads had several requests
        rows = rows.assign(**{REQUEST: ""})
    told: dict[str, str] = {}
    for request, of_request in rows.groupby(REQUEST, sort=False):
        # Of each treatment the first sentence is enough.
        told = _unseen_of(run, str(request), of_request) | told
    return told


def _unseen_of(run: Run, request: str, rows: pd.DataFrame) -> dict[str, str]:
    """Return the sentences about the answers to one of several requests, or to the only one."""
    checks, loaded = (
        {
            str(treatment): _answers(of_side)
            for treatment, of_side in rows[rows["when"] == when].groupby("treatment", sort=False)
        }
        for when in (CHECK, LOAD)
    )
    checked = Checked(_answers(rows[rows["when"] == CHECK]))
    before = f"none of the {counted(round(checked.number), 'answer')} to one user before"
    names = {item.name: "/".join(item.levels.values()) for item in run.record.treatments}
    told = {}
    for treatment, of_side in loaded.items():
        to = f" to {request}" if request else ""
        whose = f"{names[treatment]}'s answers{to} under load"
        if found := unseen(checked, of_side):
            told[treatment] = found.sentence(whose, f"{before} was like that. {WAY_OUT}.")
            continue
        others = [answers for name, answers in loaded.items() if name != treatment]
        if found := risen(checks.get(treatment, []), of_side, others):
            told[treatment] = found.sentence(whose, f"the sides do not do the same. {WAY_OUT}.")
    return told


def _answers(rows: pd.DataFrame) -> list[Answers]:
    """Return the answers of rows, each class once."""
    numbers: defaultdict[AnswerClass, float] = defaultdict(float)
    examples: dict[AnswerClass, str] = {}
    names = ["status", "media_type", "form", "keys", "bytes", "answers", "example"]
    for status, media_type, form, keys, size, number, example in rows[names].itertuples(
        index=False, name=None
    ):
        answer = AnswerClass(int(status), media_type, form, keys_from_text(keys), int(size))
        numbers[answer] += number
        examples.setdefault(answer, example)
    return [Answers(answer, number, examples[answer]) for answer, number in numbers.items()]
