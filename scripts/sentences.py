"""Check the sentences of a study's page: their numbers, the runs that they name, their length."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence

from perflab.analysis.answers import answers_to_claims
from perflab.recordings import Run, claims, published
from perflab.recordings.published_results import numbers
from perflab.reports.regions import regions
from perflab.reports.rules import findings_of

MOST_WORDS = 900
NUMBER = re.compile(r"(?<![\w./])\d+(?:,\d{3})*(?:\.\d+)?(?=x?\b)")
RUN = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{6}\b")
# What is no sentence: commands, code, and where links lead.
NO_PROSE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)


def faults(text: str, study: str, runs: Sequence[Run], drawn: Iterable[str] = ()) -> list[str]:
    """Return what is wrong with a page about a ``study``; ``runs`` are those that ship.

    ``drawn`` is what its figures say in words.
    """
    prose = NO_PROSE.sub(" ", _outside_regions(text))
    shipped = {run.run_id.rpartition("-")[2] for run in runs}
    found = [f"run {name} does not ship" for name in RUN.findall(prose) if name not in shipped]
    known = known_numbers(study, runs) | numbers_in(drawn)
    printed = [float(value) for value in published(study)["value"]]
    found += [
        f"{word} is neither published, nor told or set by a run that ships"
        for word in dict.fromkeys(NUMBER.findall(RUN.sub(" ", prose)))
        if word not in shipped and _number(word) not in known and not _is_rounded(word, printed)
    ]
    words = len(re.findall(r"[^\s|]*\w[^\s|]*", NO_PROSE.sub(" ", text)))
    return found + [f"{words:,} words; {MOST_WORDS} at most"] * (words > MOST_WORDS)


def known_numbers(study: str, runs: Iterable[Run]) -> set[float]:
    """Return the numbers of a study's words, of its runs' answers and of what these runs set."""
    rows = (*numbers(study), *claims(study))
    texts = [row.note for row in rows] + [row.claim for row in claims(study)]
    for run in runs:
        texts += [json.dumps(run.record.parameters), *(item.name for item in run.record.treatments)]
        for answer in answers_to_claims(findings_of(run)):
            texts += [answer.text, answer.study]
    return numbers_in(texts)


def numbers_in(texts: Iterable[str]) -> set[float]:
    """Return the numbers that texts hold."""
    return {_number(word) for text in texts for word in NUMBER.findall(text)}


def _number(word: str) -> float:
    return float(word.replace(",", ""))


def _is_rounded(word: str, values: Iterable[float]) -> bool:
    digits = len(word.partition(".")[2])
    return any(math.isclose(_number(word), round(abs(value), digits)) for value in values)


def _outside_regions(text: str) -> str:
    lines = text.splitlines(keepends=True)
    for region in reversed(regions(text)):
        del lines[region.first : region.last + 1]
    return "".join(lines)
