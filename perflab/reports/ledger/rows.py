"""What a check is given: named published rows, constants and words.

The rows of the ledger: every published number and claim, with what answers it.

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

Printed numbers as intervals: all values that would have been printed so.

Two printed numbers contradict each other only where no pair of values behind them agrees (interval
arithmetic: R. E. Moore, Interval Analysis, 1966).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
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


# Units that published rows may have, in the base unit of their kind.
UNITS = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0,
    "requests/s": 1.0, "messages/s": 1.0, "1/s": 1.0,
    "bytes": 1.0, "bytes/s": 1.0, "MiB/s": 2.0**20, "MB/s": 1e6,
    "%": 0.01, "percentage points": 0.01, "ratio": 1.0, "1": 1.0,
    "count": 1.0, "users": 1.0, "requests": 1.0, "connections": 1.0, "chunks": 1.0,
    "major version": 1.0,
}  # fmt: skip
# What only rounding separates is shown as one number.
NARROW = 0.02
COUNTED = frozenset({"count", "users", "requests", "connections", "chunks", "bytes"})


@dataclass(frozen=True)
class Interval:
    """All values between two ends, both included."""

    low: float
    high: float

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval) -> Interval:
        """Divide by values of one sign."""
        if other.low <= 0 <= other.high:
            return Interval(-math.inf, math.inf)
        return self * Interval(1 / other.high, 1 / other.low)

    def meets(self, other: Interval) -> bool:
        """Say whether a value lies in both; what arithmetic rounds is forgiven."""
        slack = 1e-9 * max((abs(end) for end in (self.low, self.high) if math.isfinite(end)),
                           default=0.0)  # fmt: skip
        return self.low <= other.high + slack and other.low <= self.high + slack

    @property
    def middle(self) -> float:
        """The value as it was printed."""
        return (self.low + self.high) / 2

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"at least {digits(self.low)}"
        if math.isinf(self.low):
            return f"at most {digits(self.high)}"
        narrow = self.high - self.low <= NARROW * abs(self.middle)
        return digits(self.middle) if narrow else f"{digits(self.low)} to {digits(self.high)}"


def digits(value: float) -> str:
    """Return a number with four digits and no exponent where it has none by nature."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def exactly(value: float) -> Interval:
    """Return the interval that holds one value."""
    return Interval(value, value)


def printed(value: float, unit: str, qualifier: str = "", measure: str = "") -> Interval:
    """Return the values behind a printed number, in its base unit.

    Half a unit of the last digit to both sides; after ``~`` of the last digit that is not 0. What
    is counted is exact, and so are the ends of a range (``_low``, ``_high``), unless they are
    computed percentages: a range is the study's own way to say how sure it is. ``>`` and ``<``
    leave one side open.
    """
    scale = UNITS[unit]
    if qualifier in (">", ">="):
        return Interval(value * scale, math.inf)
    if qualifier == "<":
        return Interval(-math.inf, value * scale)
    is_end = measure.endswith(("_low", "_high"))
    if (is_end and unit != "%") or (unit in COUNTED and not qualifier):
        return exactly(value * scale)
    half = _half_a_digit(value, rounded=qualifier == "~" and not is_end)
    return Interval((value - half) * scale, (value + half) * scale)


def _half_a_digit(value: float, *, rounded: bool) -> float:
    digits = Decimal(repr(value)).normalize()
    exponent = int(digits.as_tuple().exponent)
    return 0.5 * 10.0 ** (exponent if rounded else min(exponent, 0))


class Word(StrEnum):
    """What the published numbers say of a statement by themselves."""

    INCONSISTENT = "inconsistent"
    CANNOT_TELL = "cannot be told"
    CONSISTENT = "consistent"


@dataclass(frozen=True)
class Result:
    """What a rule says, and the numbers that it computed."""

    word: Word
    numbers: str


@dataclass(frozen=True)
class Part:
    """One input of a check: a row (None where there is none such), a constant, or words."""

    name: str
    value: Interval | None = None
    row: str = ""
    text: str = ""


@dataclass(frozen=True)
class Parts:
    """The inputs of a check, by name; a name may stand several times."""

    parts: Sequence[Part]

    def named(self, name: str) -> list[Part]:
        """Return all parts of a name, in the order of the file."""
        return [part for part in self.parts if part.name == name]

    def values(self, name: str) -> list[Interval]:
        """Return the numbers of a name; raises RecordingError where one of them has none."""
        parts = self.named(name)
        values = [part.value for part in parts if part.value is not None]
        if len(values) < len(parts):
            raise RecordingError(f"part '{name}' has no number, and no row that has one")
        return values

    def value(self, name: str) -> Interval:
        """Return the one number of a name; raises RecordingError where there are others."""
        values = self.values(name)
        if len(values) != 1:
            raise RecordingError(f"wants one part '{name}', not {len(values)}")
        return values[0]

    def texts(self, name: str) -> list[str]:
        """Return the words of a name."""
        return [part.text for part in self.named(name)]
