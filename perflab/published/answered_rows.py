"""The rows of the ledger: every published number and claim, with what answers it.

An answer is a few words in the row's file, of one of these forms:

==============================================  ==================================================
in the file                                     what it says
==============================================  ==================================================
``contrast EXPERIMENT [NAME=VALUE ...]: NAME``  a contrast judges it; ``*`` in the name: several do
``view EXPERIMENT [NAME=VALUE ...]: NAME``      a picture shows it, and nothing judges it
``view EXPERIMENT [...]: NAME / CLAIM``         the picture's own rule judges it
``setting EXPERIMENT [...]: NAME``              a parameter or factor has this value
``built in: WHERE``                             the system under test or its load is made so
``check: NAME``                                 the study check says what it is worth
``same as: PLACE / SCENARIO / MEASURE``         it says what that row says, and is counted with it
``not comparable: REASON``                      of another estimand or load than what is measured
``not testable here: REASON``                   what this lab or its machines cannot test
==============================================  ==================================================

``NAME=VALUE`` are parameters that the experiment needs to have the contrast, as ``perflab run -p``
takes them. ``REASON`` is a key of ``reasons.csv``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from perflab.errors import RecordingError
from perflab.parameters import did_you_mean
from perflab.recordings import claims, published, studies
from perflab.recordings.published_results import shared_rows

# What is a size, and judged only against the same estimand at the same load.
SIZES = ("result", "effect", "derived", "figure", "target")
CLAIM = "claim"
KINDS = ("setting", *SIZES, CLAIM)


class Answered(StrEnum):
    """What kind of answer a published row has."""

    CONTRAST = "contrast"
    VIEW = "view"
    SETTING = "setting"
    BUILT_IN = "built in"
    CHECK = "check"
    SAME_AS = "same as"
    NOT_COMPARABLE = "not comparable"
    NOT_TESTABLE = "not testable here"
    NONE = ""


_BY_EXPERIMENT = (Answered.CONTRAST, Answered.VIEW, Answered.SETTING)
_OTHERS = tuple(kind for kind in Answered if kind and kind not in _BY_EXPERIMENT)
_EXPERIMENT = re.compile(rf"({'|'.join(_BY_EXPERIMENT)}) (\S+)((?: [a-z_]+=\S+)*): (.+)")
_OTHER = re.compile(rf"({'|'.join(_OTHERS)}): (.+)")
_FORMS = "; ".join(
    [
        *(f"{kind} EXPERIMENT [NAME=VALUE ...]: NAME" for kind in _BY_EXPERIMENT),
        *(f"{kind}: TEXT" for kind in _OTHERS),
    ]
)


@dataclass(frozen=True)
class Answer:
    """An answer taken apart.

    ``name`` is the contrast, view, parameter, check, row or reason, as ``kind`` says.
    """

    kind: Answered
    name: str = ""
    experiment: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> str:
        """What to type to have it measured."""
        words = [f"-p {name}={value}" for name, value in self.parameters]
        return " ".join(["perflab run", self.experiment, *words])

    @property
    def view(self) -> str:
        """The view that is named."""
        return self.name.partition(" / ")[0]

    @property
    def claim(self) -> str:
        """The claim that the view judges; empty where it only shows."""
        return self.name.partition(" / ")[2]

    def covers(self, name: str) -> bool:
        """Say whether a contrast of this name is meant."""
        pattern = ".*".join(map(re.escape, self.name.split("*")))
        return re.fullmatch(pattern, name) is not None


@dataclass(frozen=True)
class Row:
    """A published number or claim.

    ``place``, ``scenario`` and ``measure`` are its key within the ``study``; a claim in words has
    its id for a scenario, its ``words``, and no ``measure``, ``value`` or ``unit``.
    """

    study: str
    place: str
    scenario: str
    measure: str
    kind: str
    answer: Answer
    value: float | None = None
    unit: str = ""
    qualifier: str = ""
    words: str = ""
    note: str = ""

    @property
    def key(self) -> str:
        """The row's name within its study."""
        return row_key(self.place, self.scenario, self.measure)

    @property
    def published(self) -> str:
        """The number as the study gives it, with its unit; the words of a claim."""
        if self.value is None:
            return self.words
        unit = "" if self.unit in ("1", "count", "ratio") else f" {self.unit}"
        return f"{self.qualifier}{self.value:,.10g}{unit}"


def row_key(place: str, scenario: str, measure: str = "") -> str:
    """Return the name of a row within its study."""
    return " / ".join(filter(None, (place, scenario, measure)))


def parse(text: str) -> Answer:
    """Take an answer apart; raises RecordingError, which names the forms, where it has none."""
    if not text:
        return Answer(Answered.NONE)
    if found := _EXPERIMENT.fullmatch(text):
        kind, experiment, words, name = found.groups()
        pairs = (word.partition("=") for word in words.split())
        parameters = tuple((key, value) for key, _, value in pairs)
        return Answer(Answered(kind), name, experiment, parameters)
    if found := _OTHER.fullmatch(text):
        return Answer(Answered(found[1]), found[2])
    hint = did_you_mean(text.partition(":")[0], [*_BY_EXPERIMENT, *_OTHERS])
    raise RecordingError(f"'{text}' answers nothing{hint}; an answer is one of: {_FORMS}")


def rows(study: str = "") -> list[Row]:
    """Return the published rows of a study, or of all: numbers first, in the order of their files.

    Raises
    ------
    RecordingError
        There is no such study, or the answer of a row is none.
    """
    words = claims().to_dict("records")
    found = []
    for each in [study] if study else studies():
        numbers = published(each).assign(study=each).to_dict("records")
        found += [_row(line) for line in numbers]
        found += [_row(_of_claim(line)) for line in words if line["study"] == each]
    return found


def _of_claim(line: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a claim in words as the line of a number, which it has not."""
    taken = {name: line[name] for name in ("study", "place", "answer")}
    kind = line["kind"] or CLAIM
    return {**taken, "scenario": line["claim_id"], "measure": "", "kind": kind,
            "words": line["claim"]}  # fmt: skip


def _row(line: Mapping[Any, Any]) -> Row:
    try:
        return Row(**{**line, "answer": parse(line["answer"])})
    except RecordingError as error:
        key = row_key(line["place"], line["scenario"], line["measure"])
        raise RecordingError(f"{line['study']}, row '{key}': {error}") from None


def reasons() -> dict[str, str]:
    """Return why rows cannot be compared or tested, a sentence by key."""
    return {line["reason"]: line["text"] for line in shared_rows("reasons")}


def estimands() -> dict[tuple[str, str], frozenset[str]]:
    """Return which responses measure what a published measure measures, by study and measure.

    A measure that is not named is measured by nothing: its rows are compared with no contrast.
    """
    responses: dict[tuple[str, str], frozenset[str]] = {}
    for line in shared_rows("estimands"):
        key = line["study"], line["measure"]
        responses[key] = responses.get(key, frozenset()) | {line["response"]}
    return responses
