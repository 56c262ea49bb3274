"""Reads the published results of ``data/published/`` and those of systems outside the lab."""

from __future__ import annotations

from csv import DictReader
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from perflab.errors import RecordingError
from perflab.parameters import did_you_mean
from perflab.paths import parts_of_systems, project_root

COLUMNS = (
    "study", "place", "scenario", "measure", "unit", "value", "qualifier", "kind", "answer", "note",
)  # fmt: skip
CLAIM_COLUMNS = ("study", "place", "claim_id", "claim", "kind", "answer")
CLAIMS = "claims"
# A table, and its numbers by place, scenario and measure.
Study: TypeAlias = tuple[pd.DataFrame, dict[tuple[str, str, str], float]]
# Tables about all studies, for `perflab.reports.ledger`; the other files are of single studies.
SHARED = (CLAIMS, "reasons", "estimands", "checks")


def studies() -> list[str]:
    """Return the names of all studies with published results."""
    return sorted(_files())


def published(study: str) -> pd.DataFrame:
    """Return a study's published values, one number per row.

    Columns: study, place, scenario, measure, unit, value (float), qualifier, kind, answer, note;
    see the README beside the files.

    Raises
    ------
    RecordingError
        There is no study of that name.
    """
    table, _ = _read(study)
    return table.copy()


def _read(study: str) -> Study:
    path = _own_folder() / f"{study}.csv"
    if study in SHARED or not path.exists():
        known = _files()
        if study not in known:
            raise RecordingError(
                f"no published study '{study}'{did_you_mean(study, known)}; "
                f"there are: {', '.join(sorted(known)) or 'none in ' + str(_folders()[0])}"
            )
        path = known[study]
    return _version(path, path.stat().st_mtime_ns)


@cache
def _version(path: Path, _: int) -> Study:
    """Return the content of a study's file, which is read again only after a change."""
    table = pd.read_csv(path, keep_default_na=False, dtype="str")
    try:
        table["value"] = table["value"].astype(float)
    except (KeyError, ValueError) as error:
        raise RecordingError(f"{path}: column 'value' must hold numbers ({error})") from None
    keys = zip(table["place"], table["scenario"], table["measure"], strict=True)
    return table[list(COLUMNS)], dict(zip(keys, table["value"], strict=True))


def published_value(study: str, place: str, scenario: str, measure: str) -> float:
    """Return one published number, in the unit of its row.

    Raises
    ------
    RecordingError
        There is no such study, or no such row in it; the message names the nearest.
    """
    _, values = _read(study)
    key = (place, scenario, measure)
    if key not in values:
        name = " / ".join(key)
        nearest = did_you_mean(name, map(" / ".join, values))
        raise RecordingError(f"{study}.csv has no row '{name}'{nearest}")
    return values[key]


def targets(study: str) -> dict[str, float]:
    """Return a study's targets by measure, in the unit of the measure."""
    _, values = _read(study)
    rows = values.items()
    return {measure: value for (place, _, measure), value in rows if place == "targets"}


def claims() -> pd.DataFrame:
    """Return the published claims: study, place, claim_id, claim (in our words), kind, answer."""
    return pd.DataFrame(shared_rows(CLAIMS), columns=list(CLAIM_COLUMNS))


def shared_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table about all studies: the checkout's, then those of other systems."""
    first, *others = [folder / f"{name}.csv" for folder in _folders()]
    if not first.exists():
        raise RecordingError(f"{first}: is missing; it is part of the checkout")
    rows: list[dict[str, str]] = []
    for path in [first, *(path for path in others if path.exists())]:
        with path.open(encoding="utf-8", newline="") as file:
            rows += [{key: value or "" for key, value in line.items()} for line in DictReader(file)]
    return rows


def _files() -> dict[str, Path]:
    """Return the file of every study; the checkout's goes before others of the same name."""
    paths = [path for folder in reversed(_folders()) for path in folder.glob("*.csv")]
    return {path.stem: path for path in paths if path.stem not in SHARED}


def _folders() -> list[Path]:
    return [_own_folder(), *parts_of_systems("published")]


def _own_folder() -> Path:
    return project_root() / "data" / "published"
