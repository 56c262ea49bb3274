"""The rows of the ledger: every published number and every published claim, with its answer."""

from __future__ import annotations

from dataclasses import dataclass

from perflab.errors import RecordingError
from perflab.published.answers import Answer, parse
from perflab.recordings import claims, published, studies
from perflab.recordings.published_results import shared_rows

# What is a size, and judged only against the same estimand at the same load.
SIZES = ("result", "effect", "derived", "figure", "target")
CLAIM = "claim"
KINDS = ("setting", "result", "effect", CLAIM, "figure", "target", "derived")


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
    wanted = [study] if study else studies()
    words = claims()
    found = []
    for each in wanted:
        own = published(each).to_dict("records")
        found += [_row(each, {str(name): value for name, value in row.items()}) for row in own]
        said = words[words["study"] == each].to_dict("records")
        found += [_claim({str(name): str(text) for name, text in row.items()}) for row in said]
    return found


def _row(study: str, row: dict[str, object]) -> Row:
    place, scenario, measure = (str(row[name]) for name in ("place", "scenario", "measure"))
    return Row(
        study=study,
        place=place,
        scenario=scenario,
        measure=measure,
        kind=str(row["kind"]),
        answer=_answer(study, row_key(place, scenario, measure), str(row["answer"])),
        value=float(str(row["value"])),
        unit=str(row["unit"]),
        qualifier=str(row["qualifier"]),
        note=str(row["note"]),
    )


def _claim(row: dict[str, str]) -> Row:
    place, name = row["place"], row["claim_id"]
    answer = _answer(row["study"], row_key(place, name), row["answer"])
    return Row(row["study"], place, name, "", row["kind"] or CLAIM, answer, words=row["claim"])


def _answer(study: str, key: str, text: str) -> Answer:
    try:
        return parse(text)
    except RecordingError as error:
        raise RecordingError(f"{study}, row '{key}': {error}") from None


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
