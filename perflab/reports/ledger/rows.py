"""The rows of the ledger, with their answers, and the inputs of the study check.

An answer is a few words in the row's file; ``data/published/README.md`` lists its forms.

The study check takes a printed number as an interval: all values that would have been printed so.
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
from functools import cache
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
    VIEW = "view"
    SETTING = "setting"
    BUILT_IN = "built in"
    CHECK = "check"
    SAME_AS = "same as"
    NOT_COMPARABLE = "not comparable"
    NOT_TESTABLE = "not testable here"
    NONE = ""


# Answers of these kinds name an experiment.
_BY_EXPERIMENT = (Answered.CONTRAST, Answered.VIEW, Answered.SETTING)
_OTHERS = tuple(kind for kind in Answered if kind and kind not in _BY_EXPERIMENT)
_ANSWER = re.compile(
    rf"(?:({'|'.join(_BY_EXPERIMENT)}) (\S+)((?: [a-z_]+=\S+)*)|({'|'.join(_OTHERS)})): (.+)"
)


@dataclass(frozen=True)
class Answer:
    """A parsed answer.

    ``name`` is the contrast, view, parameter, check, row or reason, as ``kind`` says.
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

    @property
    def view(self) -> str:
        """The name of the view."""
        return self.name.partition(" / ")[0]

    @property
    def claim(self) -> str:
        """The claim that the view judges; empty where it only shows."""
        return self.name.partition(" / ")[2]

    def covers(self, name: str) -> bool:
        """Return whether the answer means a contrast of this name."""
        pattern = ".*".join(map(re.escape, self.name.split("*")))
        return re.fullmatch(pattern, name) is not None


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
    """Parse an answer; raise RecordingError, which lists the forms, where it fits none of them."""
    if not text:
        return Answer(Answered.NONE)
    match = _ANSWER.fullmatch(text)
    if match is None:
        hint = did_you_mean(text.partition(":")[0], [*_BY_EXPERIMENT, *_OTHERS])
        forms = [f"{kind} EXPERIMENT [NAME=VALUE ...]: NAME" for kind in _BY_EXPERIMENT]
        forms += [f"{kind}: TEXT" for kind in _OTHERS]
        raise RecordingError(f"'{text}' answers nothing{hint}; it is one of: {'; '.join(forms)}")
    of_experiment, experiment, words, other, name = match.groups()
    pairs = (word.partition("=") for word in (words or "").split())
    parameters = tuple((key, value) for key, _, value in pairs)
    return Answer(Answered(of_experiment or other), name, experiment or "", parameters)


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


def plan_of(answer: Answer) -> RunPlan:
    """Return the plan of an answer's experiment with the answer's parameters."""
    return _plan(answer.experiment, answer.parameters)


@cache
def _plan(name: str, parameters: tuple[tuple[str, str], ...]) -> RunPlan:
    experiment = systems.experiment(name)
    return experiment.plan(check(experiment.parameters, dict(parameters), f"experiment '{name}'"))


# The units of published rows, in the base unit of their kind.
UNITS = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0,
    "requests/s": 1.0, "messages/s": 1.0, "1/s": 1.0,
    "bytes": 1.0, "bytes/s": 1.0, "MiB/s": 2.0**20, "MB/s": 1e6,
    "%": 0.01, "percentage points": 0.01, "ratio": 1.0, "1": 1.0,
    "count": 1.0, "users": 1.0, "requests": 1.0, "connections": 1.0, "chunks": 1.0,
    "major version": 1.0,
}  # fmt: skip
# An interval up to this share of its middle is shown as one number.
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
        """Return whether a value lies in both intervals, allowing for rounding errors."""
        slack = 1e-9 * max(abs(end) for end in (self.low, self.high, 0.0) if math.isfinite(end))
        return self.low <= other.high + slack and other.low <= self.high + slack

    @property
    def middle(self) -> float:
        """The middle of the interval: the printed value."""
        return (self.low + self.high) / 2

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"at least {digits(self.low)}"
        if math.isinf(self.low):
            return f"at most {digits(self.high)}"
        narrow = self.high - self.low <= NARROW * abs(self.middle)
        return digits(self.middle) if narrow else f"{digits(self.low)} to {digits(self.high)}"


def digits(value: float) -> str:
    """Return a number with four digits, without an exponent where it is below 1e12."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def exactly(value: float) -> Interval:
    """Return the interval that holds one value."""
    return Interval(value, value)


def printed(value: float, unit: str, qualifier: str = "", measure: str = "") -> Interval:
    """Return the values behind a printed number, in its base unit.

    The interval has half a unit of the last digit to both sides; after ``~`` of the last digit
    that is not 0. Counts are exact, and so are the ends of a range (``_low``, ``_high``), because
    a range already says how sure the study is; computed percentages are not. ``>`` and ``<`` leave
    one side open.
    """
    scale = UNITS[unit]
    if qualifier in (">", ">="):
        return Interval(value * scale, math.inf)
    if qualifier == "<":
        return Interval(-math.inf, value * scale)
    is_end = measure.endswith(("_low", "_high"))
    if (is_end and unit != "%") or (unit in COUNTED and not qualifier):
        return exactly(value * scale)
    exponent = int(Decimal(repr(value)).normalize().as_tuple().exponent)
    if is_end or qualifier != "~":
        exponent = min(exponent, 0)
    half = 0.5 * 10.0**exponent
    return Interval((value - half) * scale, (value + half) * scale)


class Word(StrEnum):
    """What published numbers say of a statement, without any measurement."""

    INCONSISTENT = "inconsistent"
    CANNOT_TELL = "cannot be told"
    CONSISTENT = "consistent"


@dataclass(frozen=True)
class Result:
    """The word of a rule, and the numbers that it computed."""

    word: Word
    numbers: str


@dataclass(frozen=True)
class Part:
    """One input of a check: a row (without value where it is missing), a constant, or words."""

    name: str
    value: Interval | None = None
    row: str = ""
    text: str = ""


@dataclass(frozen=True)
class Parts:
    """The inputs of a check, by name; several may have one name."""

    parts: Sequence[Part]

    def named(self, name: str) -> list[Part]:
        """Return all parts with a name, in the order of the file."""
        return [part for part in self.parts if part.name == name]

    def values(self, name: str) -> list[Interval]:
        """Return the numbers of the parts with a name; RecordingError where a part has none."""
        parts = self.named(name)
        values = [part.value for part in parts if part.value is not None]
        if len(values) < len(parts):
            raise RecordingError(f"part '{name}' has no number, and no row that has one")
        return values

    def value(self, name: str) -> Interval:
        """Return the number of the only part with a name; RecordingError for several."""
        values = self.values(name)
        if len(values) != 1:
            raise RecordingError(f"wants one part '{name}', not {len(values)}")
        return values[0]

    def texts(self, name: str) -> list[str]:
        """Return the words of the parts with a name."""
        return [part.text for part in self.named(name)]
