"""The rows of the ledger, with their answers.

An answer is a few words in the row's file; ``data/published/README.md`` lists its forms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

from perflab import systems
from perflab.errors import RecordingError
from perflab.parameters import check, did_you_mean
from perflab.recordings import Contrast, claims, published, studies
from perflab.recordings.published_results import shared_rows
from perflab.trials.plan import RunPlan

# Rows of these kinds are sizes: only the same estimand at the same load judges them.
SIZES = ("result", "effect", "derived", "figure", "target")
CLAIM = "claim"
KINDS = ("setting", *SIZES, CLAIM)


class Answered(StrEnum):
    """The kind of answer that a published row has."""

    CONTRAST = "contrast"
    RULE = "rule"
    VIEW = "view"
    SETTING = "setting"
    BUILT_IN = "built in"
    CHECK = "check"
    SAME_AS = "same as"
    NOT_COMPARABLE = "not comparable"
    NOT_TESTABLE = "not testable here"
    NONE = ""


# Answers of these kinds name an experiment.
_BY_EXPERIMENT = (Answered.CONTRAST, Answered.RULE, Answered.VIEW, Answered.SETTING)
_OTHERS = tuple(kind for kind in Answered if kind and kind not in _BY_EXPERIMENT)
_ANSWER = re.compile(
    rf"(?:({'|'.join(_BY_EXPERIMENT)}) (\S+)((?: [a-z_]+=\S+)*)|({'|'.join(_OTHERS)})): (.+)"
)


@dataclass(frozen=True)
class RowAnswer:
    """A parsed answer.

    ``name`` is the contrast, the claim of a rule, the view, parameter, check, row or reason, as
    ``kind`` says.
    """

    kind: Answered
    name: str = ""
    experiment: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> str:
        """The command that measures it."""
        words = [f"-p {name}={value}" for name, value in self.parameters]
        return " ".join(["perflab run", self.experiment, *words])

    def covers(self, name: str) -> bool:
        """Return whether the answer means a contrast, or the claim of a rule, of this name."""
        return self._pattern.fullmatch(name) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(".*".join(map(re.escape, self.name.split("*"))))


@dataclass(frozen=True)
class Row:
    """A published number or claim.

    ``place``, ``scenario`` and ``measure`` are its key within the ``study``. A claim in words has
    its id as scenario and its ``words``; it has no ``measure``, ``value`` or ``unit``.
    """

    study: str
    place: str
    scenario: str
    measure: str
    kind: str
    answer: RowAnswer
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


def parse(text: str) -> RowAnswer:
    """Parse an answer; raise RecordingError, which lists the forms, where it fits none of them."""
    if not text:
        return RowAnswer(Answered.NONE)
    match = _ANSWER.fullmatch(text)
    if match is None:
        hint = did_you_mean(text.partition(":")[0], [*_BY_EXPERIMENT, *_OTHERS])
        forms = [f"{kind} EXPERIMENT [NAME=VALUE ...]: NAME" for kind in _BY_EXPERIMENT]
        forms += [f"{kind}: TEXT" for kind in _OTHERS]
        raise RecordingError(f"'{text}' answers nothing{hint}; it is one of: {'; '.join(forms)}")
    of_experiment, experiment, words, other, name = match.groups()
    pairs = (word.partition("=") for word in (words or "").split())
    parameters = tuple((key, value) for key, _, value in pairs)
    return RowAnswer(Answered(of_experiment or other), name, experiment or "", parameters)


def rows(study: str = "") -> list[Row]:
    """Return the published rows of a study, or of all: numbers first, in the order of their files.

    RecordingError where there is no such study, or the answer of a row has none of the forms.
    """
    all_claims = claims().to_dict("records")
    all_rows = []
    for name in [study] if study else studies():
        numbers = published(name).assign(study=name).to_dict("records")
        all_rows += [_row(line) for line in numbers]
        all_rows += [_row(_of_claim(line)) for line in all_claims if line["study"] == name]
    return all_rows


def _of_claim(line: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a claim in words as a line like those of numbers."""
    shared = {name: line[name] for name in ("study", "place", "answer")}
    kind = line["kind"] or CLAIM
    return {**shared, "scenario": line["claim_id"], "measure": "", "kind": kind,
            "words": line["claim"]}  # fmt: skip


def _row(line: Mapping[Any, Any]) -> Row:
    try:
        return Row(**{**line, "answer": parse(line["answer"])})
    except RecordingError as error:
        key = row_key(line["place"], line["scenario"], line["measure"])
        raise RecordingError(f"{line['study']}, row '{key}': {error}") from None


def reasons() -> dict[str, str]:
    """Return the sentences that say why rows cannot be compared or tested, by key."""
    return {line["reason"]: line["text"] for line in shared_rows("reasons")}


def estimands() -> dict[tuple[str, str], set[str]]:
    """Return the responses that measure the same as a published measure, by study and measure.

    Rows of a measure that is missing here are compared with no contrast.
    """
    responses: dict[tuple[str, str], set[str]] = {}
    for line in shared_rows("estimands"):
        responses.setdefault((line["study"], line["measure"]), set()).add(line["response"])
    return responses


def mismatch(row: Row, contrast: Contrast) -> str:
    """Return why a contrast may not judge a row: the rule "same estimand or no comparison".

    A size is judged only by a contrast of a response that measures the same (``estimands.csv``),
    and only at the published load: an experiment at another load gives its contrast no published
    size. A claim in words may be judged by its direction alone.
    """
    if row.value is None or row.kind not in SIZES:
        return ""
    if contrast.response not in estimands().get((row.study, row.measure), frozenset()):
        return f"'{row.measure}' is not what {contrast.response} measures"
    sizes = (contrast.published_ratio, contrast.published_difference)
    if sizes == (None, None) and contrast.published_direction != "none":
        return "the load is not the published one"
    return ""


def plan_of(answer: RowAnswer) -> RunPlan:
    """Return the plan of an answer's experiment with the answer's parameters."""
    return _plan(answer.experiment, answer.parameters)


_experiment = cache(systems.experiment)


@cache
def _plan(name: str, parameters: tuple[tuple[str, str], ...]) -> RunPlan:
    experiment = _experiment(name)
    return experiment.plan(check(experiment.parameters, dict(parameters), f"experiment '{name}'"))
