"""Variants whose answers under load are like none that was checked before: nothing is compared.

The checks are those of all variants, before every load of the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from perflab.analysis.doubts.answer_classes import (
    AnswerClass,
    Answers,
    failure_in,
    keys_as_text,
    keys_from_text,
)
from perflab.analysis.doubts.new_answers import Checked, risen, unseen
from perflab.recordings import Run
from perflab.recordings.run import once_per_record
from perflab.statistics.in_words import counted

TABLE = "answers"
# A row for each class of answers: those of the ``check`` before the load, or of the ``load``; of a
# script the ``first`` of each name in the load, as nothing was sent before it.
CHECK, FIRST, LOAD = "check", "first", "load"
REQUEST = "request"
CLASS_COLUMNS: Mapping[str, str] = {
    "when": "string", REQUEST: "string", "status": "int64", "media_type": "string",
    "form": "string", "keys": "string", "bytes": "int64", "answers": "double", "example": "string",
}  # fmt: skip
WAY_OUT = (
    "If they are right, give a text that every right answer holds (--expect-body), and each is "
    "held against it instead"
)


def answer_rows(when: str, answers: Mapping[str, Iterable[Answers]]) -> pd.DataFrame:
    """Return answers, by the name of their request, as rows of the table."""
    rows = [
        (when, name, each.answer.status, each.answer.media_type, each.answer.form,
         keys_as_text(each.answer), each.answer.size, each.number, each.example)
        for name, of_name in answers.items()
        for each in of_name
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*CLASS_COLUMNS]).astype(
        {name: kind for name, kind in CLASS_COLUMNS.items() if kind != "string"}
    )


@once_per_record
def unseen_answers(run: Run) -> dict[str, str]:
    """Return a sentence for each treatment whose answers under load nothing has checked."""
    told: dict[str, str] = {}
    for request, of_request in _by_request(run):
        # Of each treatment the first sentence is enough.
        told = _unseen_of(run, request, of_request) | told
    return told


def _by_request(run: Run, *when: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of each request; ``when`` they were answered, or always."""
    if TABLE not in run.record.tables:
        return
    # What was answered in a trial that is not valid was answered all the same.
    rows = run.table(TABLE, [*run.current_trials()["trial_id"]])
    rows = rows[rows["when"].isin(when)] if when else rows
    for request, of_request in rows.groupby(REQUEST, sort=False):
        yield str(request), of_request


def _unseen_of(run: Run, request: str, rows: pd.DataFrame) -> dict[str, str]:
    """Return the sentences about the answers to one of several requests, or to the only one."""
    checks, loaded = (
        {
            str(treatment): _answers(of_side)
            for treatment, of_side in part.groupby("treatment", sort=False)
        }
        for part in (rows[rows["when"] != LOAD], rows[rows["when"] == LOAD])
    )
    checked = Checked(_answers(rows[rows["when"] != LOAD]))
    is_first = FIRST in set(rows["when"])
    when = "first" if is_first else "to one user before"
    number = counted(round(checked.number), "first answer" if is_first else "answer")
    before = f"none of the {number}" + f" {when}" * (not is_first)
    names = {item.name: "/".join(item.levels.values()) for item in run.record.treatments}
    told = {}
    for treatment, of_side in loaded.items():
        to = f" to {request}" if request else ""
        whose = f"{names[treatment]}'s answers{to} under load"
        if found := unseen(checked, of_side):
            told[treatment] = found.sentence(whose, f"{before} was like that. {WAY_OUT}.")
            continue
        others = [answers for name, answers in loaded.items() if name != treatment]
        if found := risen(checks.get(treatment, []), of_side, others, when):
            told[treatment] = found.sentence(whose, f"the sides do not do the same. {WAY_OUT}.")
    return told


def unlike(run: Run) -> list[str]:
    """Return a sentence for each of a script's requests that is answered in other ways by others.

    None of the kinds of the first answers is then one that the baseline gives.
    """
    baseline, *others = (
        (item.name, "/".join(item.levels.values())) for item in run.record.treatments
    )
    told = []
    for request, of_request in _by_request(run, FIRST):
        kinds = {
            treatment: {each.answer.coarse for each in _answers(of_side)}
            for treatment, of_side in of_request.groupby("treatment", sort=False)
        }
        told += [
            f"{name} and {baseline[1]} give different answers to {request}. They may not do the "
            "same work."
            for treatment, name in others
            if {baseline[0], treatment} <= kinds.keys()
            and kinds[treatment].isdisjoint(kinds[baseline[0]])
        ]
    return told


def failing_alike(run: Run) -> list[str]:
    """Return a sentence for each request that every variant mostly answers with an error."""
    told = []
    for request, of_request in _by_request(run, LOAD):
        sides = of_request.groupby("treatment", sort=False)
        failed = [_most_failed(_answers(of_side)) for _, of_side in sides]
        if len(failed) == len(run.record.treatments) and all(failed):
            to = f" to {request}" if request else ""
            told.append(
                f"most answers{to} of every variant {failed[0]}. They may be compared in how fast "
                "they fail. Way out: mend the request, or give a text that every right answer "
                "holds (--expect-body)."
            )
    return told


def _most_failed(answers: Sequence[Answers]) -> str:
    """Return what says in more than half of the answers that they failed; or nothing."""
    failed = [each for each in answers if failure_in(each.answer)]
    if not sum(each.number for each in failed) > sum(each.number for each in answers) / 2:
        return ""
    usual = max(failed, key=lambda each: each.number)
    return f"{failure_in(usual.answer)}, such as '{usual.example}'"


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
