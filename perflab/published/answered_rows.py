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
    """Take an answer apart.

    Raises
    ------
    RecordingError
        It has none of the forms; the message names them.
    """
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
    """Return all published rows, by study: numbers first, in the order of their files.

    Parameters
    ----------
    study : str
        Only those of this one; empty: all.

    Raises
    ------
    RecordingError
        There is no such study, or the answer of a row is none.
    """
    words = claims().to_dict("records")
    found = []
    for each in [study] if study else studies():
        found += [_number(line) for line in published(each).assign(study=each).to_dict("records")]
        found += [_claim(line) for line in words if line["study"] == each]
    return found


def _number(line: Mapping[Any, Any]) -> Row:
    return Row(**{**line, "answer": _answer(line, line["measure"])})


def _claim(line: Mapping[Any, Any]) -> Row:
    place, name, kind = line["place"], line["claim_id"], line["kind"] or CLAIM
    answer = _answer({**line, "scenario": name})
    return Row(line["study"], place, name, "", kind, answer, words=line["claim"])


def _answer(line: Mapping[Any, Any], measure: str = "") -> Answer:
    try:
        return parse(line["answer"])
    except RecordingError as error:
        key = row_key(line["place"], line["scenario"], measure)
        raise RecordingError(f"{line['study']}, row '{key}': {error}") from None


def reasons() -> dict[str, str]:
    """Return why rows cannot be compared or tested, a sentence by key."""
    return {line["reason"]: line["text"] for line in shared_rows("reasons")}


def estimands() -> dict[tuple[str, str], frozenset[str]]:
    """Return which responses measure what a published measure measures, by study and measure.

    A measure that is not named is measured by nothing: its rows are compared with no contrast.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for line in shared_rows("estimands"):
        found.setdefault((line["study"], line["measure"]), set()).add(line["response"])
    return {key: frozenset(responses) for key, responses in found.items()}
