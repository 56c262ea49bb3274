"""Reads the published results of ``data/published/`` and those of systems outside the lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from perflab.errors import RecordingError
from perflab.parameters import Parameters, did_you_mean
from perflab.paths import parts_of_systems, project_root
from perflab.recordings.published_rows import Claim, Number
from perflab.recordings.typed_rows import rows_of
from perflab.statistics.comparison import Scale, SizeBound

NUMBER_COLUMNS = (
    "study", "place", "scenario", "measure", "unit", "value", "qualifier", "kind", "answered_by",
    "experiment", "parameters", "item", "reason", "note",
)  # fmt: skip
CLAIMS = "claims"
# Tables about all studies, for `perflab.reports.ledger`; the other files are of single studies.
SHARED = (CLAIMS, "reasons", "estimands", "checks")
P = TypeVar("P", bound=Parameters)
Direction = Literal["greater", "smaller", "none"]


@dataclass(frozen=True)
class Study:
    """A study's numbers: their rows, and the values by key."""

    numbers: tuple[Number, ...]
    values: Mapping[tuple[str, str, str], float]


def studies() -> list[str]:
    """Return the names of all studies with published results."""
    return sorted(_files())


def published(study: str) -> pd.DataFrame:
    """Return a study's published values, one number per row.

    The columns are those of the file; see the README beside it.

    RecordingError where there is no study of that name.
    """
    records = [row.model_dump(mode="json") for row in numbers(study)]
    return pd.DataFrame(records, columns=list(NUMBER_COLUMNS))


def numbers(study: str) -> tuple[Number, ...]:
    """Return the rows of a study's published values."""
    return _read(study).numbers


def _read(study: str) -> Study:
    own = _own_folder() / f"{study}.csv"
    # Plans ask thousands of times, nearly always for the checkout's: only then is nothing listed.
    path = own if own.is_file() and study not in SHARED else _files().get(study)
    if path is None:
        known = studies()
        raise RecordingError(
            f"no published study '{study}'{did_you_mean(study, known)}; "
            f"there are: {', '.join(known) or f'none in {_own_folder()}'}"
        )
    return _study(path, path.stat().st_mtime_ns)


@cache
def _study(path: Path, _: int) -> Study:
    """Return the content of a study's file, which is read again only after a change."""
    rows = rows_of(path, Number)
    values = {(row.place, row.scenario, row.measure): row.value for row in rows}
    return Study(tuple(rows), values)


def published_value(study: str, place: str, scenario: str, measure: str) -> float:
    """Return one published number, in the unit of its row.

    RecordingError where there is no such study, or no such row in it; the message names the
    nearest.
    """
    values = _read(study).values
    key = (place, scenario, measure)
    if key not in values:
        name = " / ".join(key)
        nearest = did_you_mean(name, map(" / ".join, values))
        raise RecordingError(f"{study}.csv has no row '{name}'{nearest}")
    return values[key]


def targets(study: str) -> dict[str, float]:
    """Return a study's targets by measure, in the unit of the measure."""
    return {key[2]: value for key, value in _read(study).values.items() if key[0] == "targets"}


def claims(study: str = "") -> list[Claim]:
    """Return the published claims of a study, or of all."""
    return [claim for claim in shared_rows(CLAIMS, Claim) if study in ("", claim.study)]


def stated(study: str, claim_id: str) -> str:
    """Return what a study claims, as a clause.

    RecordingError where it has no such claim.
    """
    known = {claim.claim_id: claim for claim in claims(study)}
    if claim_id not in known:
        nearest = did_you_mean(claim_id, known)
        raise RecordingError(f"claims.csv has no claim '{claim_id}' of {study}{nearest}")
    return known[claim_id].clause


def shared_rows(name: str, model: type[P]) -> list[P]:
    """Return the rows of a table about all studies: the checkout's, then those of other systems."""
    first, *others = [folder / f"{name}.csv" for folder in _folders()]
    if not first.exists():
        raise RecordingError(f"{first}: is missing; it is part of the checkout")
    paths = [first, *(path for path in others if path.exists())]
    return [row for path in paths for row in _shared(path, model, path.stat().st_mtime_ns)]


@cache
def _shared(path: Path, model: type[P], _: int) -> list[P]:
    return rows_of(path, model)


def _files() -> dict[str, Path]:
    """Return the file of every study; the checkout's goes before others of the same name."""
    paths = [path for folder in reversed(_folders()) for path in folder.glob("*.csv")]
    return {path.stem: path for path in paths if path.stem not in SHARED}


def _folders() -> list[Path]:
    return [_own_folder(), *parts_of_systems("published")]


def _own_folder() -> Path:
    return project_root() / "data" / "published"


class ContrastPair(BaseModel):
    """Two sets of levels, each of which selects treatments."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    numerator: dict[str, str]
    denominator: dict[str, str]


class Contrast(ContrastPair):
    """A published claim as a ratio of one response between two sets of treatments.

    With ``interaction`` the effect is the ratio of this pair's ratio to that pair's.
    ``published_direction`` says whether the ratio is above 1 ("greater"), below 1 ("smaller"), or
    claimed to be 1 ("none"). With ``scale`` "difference" the effect is numerator minus denominator
    in the response's unit, for claims such as "10 points of CPU more"; it is above or below 0.
    A "level" is that of the numerator alone, for claims such as "below 1 ms": nothing is compared,
    and the denominator is empty. A "share" is what numerator minus denominator is of the numerator,
    or of the difference of the ``interaction``: "half of the time goes with the write".
    With a ``limit`` the claim is not that there is an effect, but that it lies above the limit, or
    below ("more than half"). ``published_difference`` is the published size on all scales but
    ratios.
    With ``published_bound`` the published size is a bound: for example, a reduction by 79% from a
    baseline in which every request timed out says that the ratio is "at most" 0.21.
    ``not_testable`` is the reason why this machine cannot test the claim. ``set_by_load`` says how
    the load itself sets the answer, so that a measurement cannot find it. ``source`` is where the
    claim was published; an unpublished one has none. ``asks`` is the question that the contrast
    answers, in a few words (empty: it is none of the primary ones), and ``subject`` says what its
    number in the answer is of: ``requests/s``.
    """

    name: str
    claim: str
    response: str
    scale: Scale = "ratio"
    interaction: ContrastPair | None = None
    published_ratio: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    published_difference: float | None = Field(default=None, allow_inf_nan=False)
    published_bound: SizeBound = ""
    published_direction: Direction | None = None
    limit: float | None = Field(default=None, allow_inf_nan=False)
    source: str = ""
    not_testable: str = ""
    set_by_load: str = ""
    asks: str = ""
    subject: str = ""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Contrast:
        direction, ratio = self.published_direction, self.published_ratio
        sizes = (direction, ratio, self.published_difference)
        if not self.source and any(published is not None for published in sizes):
            raise ValueError("it needs a source: where was its size or direction published?")
        if self.published_bound and ratio is None and self.published_difference is None:
            raise ValueError("published_bound needs the published size that is the bound")
        if self.published_bound and direction == "none":
            raise ValueError("'no effect' is no bound")
        self._check_limit()
        if self.scale != "ratio":
            return self._agrees_without_ratio()
        if self.published_difference is not None:
            raise ValueError("published_difference is no ratio; it needs another scale")
        if ratio is not None and _contradicts(direction, ratio, self.nothing):
            raise ValueError(f"published_ratio {ratio} is not '{direction}' than {self.nothing:g}")
        return self

    @property
    def family(self) -> str:
        """The claims that are corrected together: comparisons, levels, or shares of a response."""
        is_compared = self.scale in ("ratio", "difference")
        return self.response if is_compared else f"{self.response}, {self.scale}"

    @property
    def nothing(self) -> float:
        """The effect that is none, or the limit of the claim."""
        if self.limit is not None:
            return self.limit
        return 1.0 if self.scale == "ratio" else 0.0

    def _check_limit(self) -> None:
        if (self.scale == "level") != (not self.denominator):
            raise ValueError("a level has no denominator, and all else has one")
        if self.limit is None and self.scale in ("level", "share"):
            raise ValueError(f"a {self.scale} needs a limit: what is claimed of it?")
        if self.limit is None:
            return
        if self.published_direction not in ("greater", "smaller"):
            raise ValueError("a limit needs a published_direction: 'greater' or 'smaller' than it")
        if self.scale == "ratio" and self.limit <= 0:
            raise ValueError(f"the limit of a ratio is above 0, not {self.limit}")

    def _agrees_without_ratio(self) -> Contrast:
        direction, size = self.published_direction, self.published_difference
        if self.published_ratio is not None:
            raise ValueError(
                f"a {self.scale} is compared with published_difference, not with a ratio"
            )
        if direction == "none" or size == 0:
            raise ValueError("'no effect' is judged by a ratio: a unit has no margin of its own")
        if size is not None and _contradicts(direction, size, self.nothing):
            raise ValueError(
                f"published_difference {size} is not '{direction}' than {self.nothing:g}"
            )
        return self


def _contradicts(direction: Direction | None, published: float, no_effect: float) -> bool:
    return (direction == "greater" and published <= no_effect) or (
        direction == "smaller" and published >= no_effect
    )
